import { expect, it } from "vitest";
import { MessageQueue } from "./queue.ts";
import { user } from "../testing/play.ts";

it("R16: a message that comes back has the name that it went with, at the front", () => {
  const queue = new MessageQueue("steering", "one-at-a-time");
  const first = queue.push(user("A"));
  const second = queue.push(user("B"));
  queue.putBack(queue.drain());
  expect(queue.list().map(({ id }) => id)).toEqual([first, second]);
});

it("no two that wait have one name, also where a message is queued twice", () => {
  const queue = new MessageQueue("steering", "one-at-a-time");
  const same = user("A");
  queue.push(same);
  queue.push(same);
  queue.putBack(queue.drain());
  expect(new Set(queue.list().map(({ id }) => id)).size).toBe(2);
});
