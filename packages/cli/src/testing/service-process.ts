// A scripted service in a process of its own, for measuring: it prints its address, gives the
// answer that it was sent last to all who ask, and hands out the requests that came.
import { type Answer, scriptedService } from "./scripted-service.ts";

const service = await scriptedService(() => ({ say: "Done." }));

process.on("message", (message: { answer: Answer } | "requests") => {
  if (message === "requests") process.send?.(service.requests.map(({ text }) => text));
  else service.play(() => message.answer);
});
process.on("disconnect", () => process.exit());
process.send?.(service.url);
