// A model that is not ours: a stream function is all that the loop needs.
import { Agent } from "@gyre/agent";
import {
  Accumulator,
  AssistantMessageEventStream,
  type Message,
  type Model,
  type StreamFn,
} from "@gyre/ai";

const parrot: Model = { id: "parrot-1", name: "Parrot", api: "parrot", provider: "cage" };

/** Repeats the prompt, word by word, as a service would over a wire. */
const stream: StreamFn = (model, context, options) => {
  const events = new AssistantMessageEventStream();
  const answer = new Accumulator(events, model, Date.now());
  const words = lastText(context.messages).split(" ");
  const block = answer.textStart();
  const next = (): void => {
    const word = words.shift();
    if (options.signal?.aborted) answer.fail("Aborted.", { kind: "aborted" });
    else if (word === undefined) {
      answer.usage({ input: 3, output: 3 });
      answer.done("stop");
    } else {
      answer.text(block, `${word} `);
      setTimeout(next, 1);
    }
  };
  setTimeout(next, 1);
  return events;
};

function lastText(messages: readonly Message[]): string {
  const last = messages.at(-1);
  return typeof last?.content === "string" ? last.content : "";
}

const agent = new Agent({ streamFn: stream, model: parrot });
const run = agent.run("Pretty Polly Parrot");
for await (const text of run.textStream) console.log(`+ ${text.trim()}`);
const end = await run.result();
console.log(end.stop, end.usage.totalTokens, "tokens");
