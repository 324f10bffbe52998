import { Agent } from "@gyre/agent";
export async function POST(request: Request): Promise<Response> {
  const agent = new Agent({ model: "anthropic/claude-sonnet-4-5" });
  const run = agent.run(await request.text(), { signal: request.signal });
  const parts = run.textStream[Symbol.asyncIterator]();
  const body = new ReadableStream<string>({
    async pull(controller) {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  return new Response(body.pipeThrough(new TextEncoderStream()));
}
for (const body of ["Tea?", "And with a wrong key?"]) {
  const response = await POST(new Request("http://page.example", { method: "POST", body }));
  console.log(await response.text().catch(String));
}
