import { isRecord } from "@gyre/ai";
import type { LiveWire, Packet } from "../contract/bus.ts";

/** Deltas of texts are nearly all that is sent: they are short. */
type ShortEvent = readonly [contentIndex: number, delta: string] | LiveWire;

type ShortPacket = readonly [
  session: string,
  token: number,
  last: number,
  base: number,
  isWhole: 0 | 1,
  events: readonly ShortEvent[],
];

/** Packets of a session that are too large to be sent: they are kept elsewhere, and named. */
export interface LargePacket {
  readonly session: string;
  /** JSON of all of them. */
  readonly data: string;
}

/** The packet as JSON. */
export function formatPacket(packet: Packet): string {
  const { session, token, last, base, isWhole, events } = packet;
  const short: ShortPacket = [session, token, last, base, isWhole ? 1 : 0, events.map(shorten)];
  return JSON.stringify(short);
}

/** Undefined: it is of a version that this one does not know. */
export function parsePacket(value: unknown): Packet | undefined {
  if (!Array.isArray(value)) return undefined;
  const [session, token, last, base, isWhole, events]: unknown[] = value;
  const isKnown = typeof session === "string" && Array.isArray(events);
  if (!isKnown || ![token, last, base].every(Number.isSafeInteger)) return undefined;
  return {
    ...{ session, token: Number(token), last: Number(last), base: Number(base) },
    events: events.flatMap((event: unknown) => lengthen(event) ?? []),
    ...(isWhole === 1 && { isWhole: true }),
  };
}

/**
 * Packs packets into texts of at most `maxBytes`. Of a session with something larger all is returned
 * apart, so that its packets stay in order.
 */
export function pack(
  packets: readonly Packet[],
  maxBytes: number,
): { texts: string[]; large: LargePacket[] } {
  const sessions = new Map<string, string[]>();
  for (const packet of packets) {
    const parts = sessions.get(packet.session) ?? [];
    sessions.set(packet.session, parts);
    parts.push(...splitPacket(packet, maxBytes - 2));
  }
  const texts: string[] = [];
  const large: LargePacket[] = [];
  let fitting: string[] = [];
  let bytes = 2;
  const finish = (): void => {
    if (fitting.length > 0) texts.push(`[${fitting.join(",")}]`);
    fitting = [];
    bytes = 2;
  };
  for (const [session, parts] of sessions) {
    const sizes = parts.map((part) => Buffer.byteLength(part) + 1);
    if (sizes.some((size) => size > maxBytes - 2)) {
      large.push({ session, data: `[${parts.join(",")}]` });
      continue;
    }
    for (const [at, part] of parts.entries()) {
      const size = sizes[at] ?? 0;
      if (bytes + size > maxBytes) finish();
      fitting.push(part);
      bytes += size;
    }
  }
  finish();
  return { texts, large };
}

/** A packet of several events may be sent as several; one that is whole stays whole. */
function splitPacket(packet: Packet, maxBytes: number): string[] {
  const data = formatPacket(packet);
  const { events, last, isWhole } = packet;
  if (isWhole || events.length < 2 || Buffer.byteLength(data) < maxBytes) return [data];
  const half = events.length >> 1;
  const [first, second] = [events.slice(0, half), events.slice(half)];
  return [
    ...splitPacket({ ...packet, last: last - second.length, events: first }, maxBytes),
    ...splitPacket({ ...packet, events: second }, maxBytes),
  ];
}

function shorten(event: LiveWire): ShortEvent {
  if (event.type !== "message_update" || event.event.type !== "text_delta") return event;
  const { contentIndex, delta } = event.event;
  return [Number(contentIndex), String(delta)];
}

function lengthen(event: unknown): LiveWire | undefined {
  if (Array.isArray(event)) {
    const [contentIndex, delta]: unknown[] = event;
    return { type: "message_update", event: { type: "text_delta", contentIndex, delta } };
  }
  // Events come from workers of this package; one of a type that is not known is passed over.
  return isRecord(event) && typeof event["type"] === "string"
    ? (event as unknown as LiveWire)
    : undefined;
}

/** The texts of a list that another process has sent. */
export function listTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
