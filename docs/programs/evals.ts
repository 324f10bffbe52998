import { generate } from "@gyre/agent";
import { z } from "zod";
const output = z.object({ score: z.number().min(0).max(1) });
for (const prompt of ["Name a green tea.", "Name a black tea."]) {
  const { text } = await generate({ model: "anthropic/claude-haiku-4-5", prompt });
  const task = `How good is the answer, from 0 to 1?\nQuestion: ${prompt}\nAnswer: ${text}`;
  const judged = await generate({ model: "anthropic/claude-sonnet-4-5", prompt: task, output });
  console.log(judged.output.score, text);
}
