import { randomUUID } from "node:crypto";
import { redirect } from "next/navigation";
import { toUIMessages } from "@gyre/server/streams";
import type { UIMessage } from "ai";
import { store } from "../lib/store";
import { Chat } from "./chat";

/** The conversation is in the address: it is there when the page is loaded again. */
export default async function Page({ searchParams }: { searchParams: Promise<{ chat?: string }> }) {
  const { chat } = await searchParams;
  if (chat === undefined) redirect(`/?chat=${randomUUID()}`);
  const { messages = [], pending } = (await store.load(chat)) ?? {};
  return <Chat id={chat} messages={toUIMessages(messages, { pending }) as UIMessage[]} />;
}
