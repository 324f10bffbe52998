import { isRecord, redact } from "@gyre/ai";
import type { Entry } from "@gyre/sessions";

/**
 * An entry with `[redacted]` for what may be a key, wherever it stands: in texts, arguments, results of tools of the
 * service, citations and names and addresses of files. Contents of pictures stay as they are.
 */
export function hideSecrets(entry: Entry): Entry {
  // Only texts are replaced, each by a text.
  return hideIn(entry) as Entry;
}

function hideIn(value: unknown): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map(hideIn);
  if (!isRecord(value)) return value;
  const isPicture = value["type"] === "image" || value["type"] === "base64";
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      isPicture && name === "data" ? one : hideIn(one),
    ]),
  );
}
