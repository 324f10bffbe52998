import { expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { playRandomRun } from "../../testing/random-runs.ts";
import { answerQuestions, showTranscript, withoutErrors } from "../../testing/shown-run.ts";
import { showUIMessage } from "../../testing/shown-ui.ts";
import { type UIMessage, UIMessageBuilder } from "./ui-message-builder.ts";
import { toUIMessageStream } from "./ui-message-stream.ts";
import { fromUIMessages, toUIMessages } from "./ui-messages.ts";

const CASES = countCases(150, 3000, "GYRE_RUNS");

it(`shows ${CASES} random runs as the transcript has them, and gives the transcript back`, async () => {
  const first = pickSeed();
  for (let seed = first; seed < first + CASES; seed++) {
    const prompt: UIMessage = {
      id: "prompt",
      role: "user",
      parts: [{ type: "text", text: "Go" }],
    };
    let message: UIMessage | undefined;
    const { messages } = await playRandomRun(seed, async (segment) => {
      const { run, history, isContinued, decisions } = segment;
      if (message) message.parts = answerQuestions(message.parts, decisions);
      const builder = new UIMessageBuilder("answer", message);
      const stream = toUIMessageStream(run, { history, isContinued, continues: message });
      for await (const chunk of stream) builder.add(JSON.parse(JSON.stringify(chunk)));
      ({ message } = builder);
    });
    const where = `GYRE_SEED=${seed}`;
    const shown = message ? [prompt, message] : [prompt];
    expect(showUIMessage(message), where).toEqual(showTranscript(messages));
    const [, ...transcript] = withoutErrors(messages);
    const [, ...restored] = withoutErrors(fromUIMessages(shown).messages);
    expect(restored, where).toEqual(transcript);
    // A page that opens the conversation later.
    const opened = JSON.parse(JSON.stringify(toUIMessages(messages)));
    expect(withoutErrors(fromUIMessages(opened).messages), where).toEqual(withoutErrors(messages));
  }
});
