import { isRecord, toBase64 } from "@gyre/ai";

/** A call that a person is asked about. */
export interface SignedCall {
  /** The conversation: an approval of one does not count in another. */
  chat: string;
  id: string;
  name: string;
  input: unknown;
}

/** Secrets that are shorter can be guessed. */
export const MIN_SECRET_CHARS = 16;

/**
 * Signs the calls that a route without a store asks about, so that a client can approve those and no
 * others: an HMAC over the conversation, the tool, the id of the call and its input.
 */
export class ApprovalSigner {
  readonly #key: ReturnType<typeof crypto.subtle.importKey>;

  /** Throws on a secret that can be guessed. */
  constructor(secret: string) {
    if (secret.length < MIN_SECRET_CHARS) {
      throw new TypeError(
        `The secret that signs approvals has ${secret.length} characters: give at least ${MIN_SECRET_CHARS}, made by chance.`,
      );
    }
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const bytes = new TextEncoder().encode(secret);
    this.#key = crypto.subtle.importKey("raw", bytes, algorithm, false, ["sign", "verify"]);
    // It is awaited with the first signature.
    this.#key.catch(() => {});
  }

  async sign(call: SignedCall): Promise<string> {
    const bytes = await crypto.subtle.sign("HMAC", await this.#key, toBytes(call));
    return toBase64(new Uint8Array(bytes))
      .replaceAll("+", "-")
      .replaceAll("/", "_")
      .replaceAll("=", "");
  }

  /** Whether `signature` is of this very call. Takes as long for a wrong one as for the right one. */
  async verify(call: SignedCall, signature: string): Promise<boolean> {
    const expected = await this.sign(call);
    if (expected.length !== signature.length) return false;
    let difference = 0;
    for (let i = 0; i < expected.length; i++) {
      difference |= expected.charCodeAt(i) ^ signature.charCodeAt(i);
    }
    return difference === 0;
  }
}

function toBytes({ chat, id, name, input }: SignedCall): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(
    JSON.stringify(["gyre-approval-1", chat, name, id, sortKeys(input)]),
  );
}

/** The same value has the same text, also after a database has put its keys into another order. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return ["list", ...value.map(sortKeys)];
  if (!isRecord(value)) return value;
  const names = Object.keys(value).toSorted();
  return ["object", ...names.map((name) => [name, sortKeys(value[name])])];
}
