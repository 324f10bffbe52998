import { Agent } from "@gyre/agent";
import { fromUiMessages } from "@gyre/ai/convert";
export async function POST(request: Request): Promise<Response> {
  const chat = (await request.json()) as { messages: object[] };
  const agent = new Agent({ model: "anthropic/claude-sonnet-4-5" });
  const run = agent.run(fromUiMessages(chat.messages).messages, { signal: request.signal });
  const { readable, writable } = new TextEncoderStream();
  const writer = writable.getWriter();
  const write = async () => {
    for await (const text of run.textStream) await writer.write(text);
    await writer.close();
  };
  write().catch((error) => writer.abort(error));
  return new Response(readable);
}
const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Which tea?" }] }];
const body = JSON.stringify({ id: "chat", messages, trigger: "submit-message" });
for (const _ of ["a good key", "a wrong key"]) {
  const response = await POST(new Request("http://page.example", { method: "POST", body }));
  console.log(await response.text().catch(String));
}
