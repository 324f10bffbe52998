import { describe, expect, it } from "vitest";
import type { Message } from "./messages.ts";
import {
  estimateContextTokens,
  estimateMessageTokens,
  estimateTokens,
  IMAGE_TOKENS,
  TokenCalibration,
} from "./tokens.ts";

/** Texts and what a common tokenizer (o200k) makes of them. */
const counted: [string, number, string][] = [
  [
    "prose",
    41,
    "The loop asks the model, runs the tools that it calls, and hands the results back until there is nothing left to do. A person may steer it at any moment; what was finished is kept.",
  ],
  [
    "code",
    58,
    "export function sum(values: readonly number[]): number {\n  let total = 0;\n  for (const value of values) {\n    if (!Number.isFinite(value)) throw new RangeError(`Not a number: ${value}`);\n    total += value;\n  }\n  return total;\n}\n",
  ],
  [
    "JSON",
    39,
    '{"path":"src/index.ts","edits":[{"line":42,"text":"return value ?? 0;"},{"line":1007,"text":""}],"dryRun":false}',
  ],
  [
    "Chinese",
    91,
    "这家小书店开在老街的拐角处，门口摆着两盆绿色的植物。店主每天下午都会泡一壶茶，和来看书的客人聊几句。他说，现在的人太忙了，能安静地读完一本书已经不容易。数据库的连接数超过上限以后，新的请求会排队等待，直到有空闲的连接为止。",
  ],
  [
    "Japanese",
    99,
    "駅前の小さな喫茶店には、毎朝同じ時間に同じ客がやってくる。店長は何も聞かずにコーヒーを出し、客は黙って本を開く。設定ファイルが見つからないときは、初期値が使われ、その旨がログに記録されます。接続が切れた場合は自動的に再試行します。",
  ],
  [
    "Korean",
    65,
    "역 앞의 작은 카페에는 매일 아침 같은 시간에 같은 손님이 찾아온다. 주인은 아무 말 없이 커피를 내주고 손님은 조용히 책을 펼친다. 설정 파일을 찾지 못하면 기본값이 사용되고 그 사실이 로그에 기록됩니다.",
  ],
];

describe("estimateTokens", () => {
  it.each(counted)("%s: is within 10 %% of the count", (_name, tokens, text) => {
    expect(Math.abs(estimateTokens(text) / tokens - 1)).toBeLessThan(0.1);
  });

  it("is a whole number, for any character; 0 for nothing", () => {
    expect(estimateTokens("")).toBe(0);
    const tokens = ["a", "\n", "漢", "한", "😀", "\ud800", "é", "я", "9", "_"].map(estimateTokens);
    expect(tokens).toEqual([1, 1, 1, 1, 2, 1, 1, 1, 1, 1]);
  });

  it("grows with the text: twice the text is twice the tokens", () => {
    for (const [, , text] of counted) {
      const once = estimateTokens(`${text}\n`.repeat(50));
      const twice = estimateTokens(`${text}\n`.repeat(100));
      expect(Math.abs(twice - 2 * once)).toBeLessThanOrEqual(2);
    }
  });
});

describe("messages and requests", () => {
  const text = "Some words to be counted, and some more of them.";
  const user: Message = { role: "user", content: text, timestamp: 0 };

  it("a text weighs the same as a string and as a block", () => {
    expect(estimateMessageTokens({ ...user, content: [{ type: "text", text }] })).toBe(
      estimateMessageTokens(user),
    );
    expect(estimateMessageTokens(user)).toBeGreaterThan(estimateTokens(text));
  });

  it("an image weighs the same whatever its size", () => {
    const picture = (data: string): Message => ({
      role: "user",
      content: [{ type: "image", data, mimeType: "image/png" }],
      timestamp: 0,
    });
    const small = estimateMessageTokens(picture("AA=="));
    expect(estimateMessageTokens(picture("A".repeat(100_000)))).toBe(small);
    expect(small).toBeGreaterThanOrEqual(IMAGE_TOKENS);
  });

  it("every kind of block counts, and what the model never sees does not", () => {
    const assistant = (content: Extract<Message, { role: "assistant" }>["content"]): number =>
      estimateMessageTokens({
        role: "assistant",
        content,
        api: "a",
        provider: "p",
        model: "m",
        usage: {},
        stopReason: "stop",
        timestamp: 0,
      });
    const nothing = assistant([]);
    const words = estimateTokens(text);
    const call = { type: "toolCall", id: "c", name: "read", arguments: {} } as const;
    expect(assistant([{ type: "text", text }])).toBe(nothing + words);
    expect(assistant([{ type: "thinking", thinking: text }])).toBe(nothing + words);
    expect(assistant([{ ...call, arguments: { text } }])).toBeGreaterThan(nothing + words);
    expect(assistant([{ ...call, rawArguments: text, argumentsError: "no" }])).toBeGreaterThan(
      nothing + words,
    );
    for (const more of [{ input: text }, { output: text }, { raw: { text } }, {}]) {
      const service = assistant([{ type: "serviceTool", id: "s", name: "search", ...more }]);
      expect(service).toBeGreaterThan("input" in more ? nothing + words : nothing);
    }
    const result: Message = {
      role: "toolResult",
      toolCallId: "c",
      toolName: "read",
      content: [{ type: "text", text }],
      isError: false,
      timestamp: 0,
    };
    expect(estimateMessageTokens({ ...result, details: text.repeat(100) })).toBe(
      estimateMessageTokens(result),
    );
  });

  it("a request is its system prompt, tools and messages", () => {
    const messages = [user, user];
    const tools = [{ name: "read", description: text, parameters: { type: "object" } }];
    const alone = estimateContextTokens({ messages });
    const prompted = estimateContextTokens({ messages, systemPrompt: text });
    expect(alone).toBe(2 * estimateMessageTokens(user));
    expect(prompted).toBe(alone + estimateMessageTokens(user));
    expect(estimateContextTokens({ messages, tools })).toBeGreaterThan(
      alone + estimateTokens(text),
    );
    expect(estimateContextTokens({ messages: [] })).toBe(0);
  });
});

describe("TokenCalibration", () => {
  it("changes nothing until it has seen a report", () => {
    expect(new TokenCalibration().correct(1234)).toBe(1234);
  });

  it("comes to the service's own count", () => {
    const calibration = new TokenCalibration();
    for (let i = 0; i < 20; i++) calibration.observe(1000, 1300);
    expect(calibration.correct(1000)).toBe(1300);
    expect(calibration.correct(10)).toBe(13);
  });

  it("one report that is far off moves it only a little", () => {
    const calibration = new TokenCalibration();
    for (let i = 0; i < 20; i++) calibration.observe(1000, 1000);
    calibration.observe(1000, 1_000_000);
    expect(calibration.correct(1000)).toBeLessThan(1250);
    calibration.observe(1000, 1);
    expect(calibration.correct(1000)).toBeGreaterThan(850);
  });

  it("never goes beyond half or twice", () => {
    const high = new TokenCalibration();
    const low = new TokenCalibration();
    for (let i = 0; i < 100; i++) {
      high.observe(1, 1e9);
      low.observe(1e9, 1);
    }
    expect([high.correct(1000), low.correct(1000)]).toEqual([2000, 500]);
  });

  it("takes no notice of reports that make no sense", () => {
    const calibration = new TokenCalibration();
    for (const [estimated, reported] of [
      [0, 5],
      [5, 0],
      [0, 0],
      [NaN, 5],
      [5, NaN],
      [-5, 5],
      [5, Infinity],
    ]) {
      calibration.observe(estimated ?? 0, reported ?? 0);
    }
    expect(calibration.correct(1000)).toBe(1000);
  });
});
