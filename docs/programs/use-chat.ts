import { Agent } from "@gyre/agent";
import { createChatRoute } from "@gyre/server/streams";
export const POST = createChatRoute(() => new Agent({ model: "anthropic/claude-sonnet-4-5" }));
const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Which tea?" }] }];
const body = JSON.stringify({ id: "chat", messages, trigger: "submit-message" });
for (const _ of ["a good key", "a wrong key"]) {
  const response = await POST(new Request("http://page.example", { method: "POST", body }));
  console.log(/"(?:delta|errorText)":"([^"]+)"/.exec(await response.text())?.[1]);
}
