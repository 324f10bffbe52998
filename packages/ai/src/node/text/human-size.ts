const UNIT_STEP = 1024;
const UNITS = ["KB", "MB", "GB", "TB", "PB"] as const;

/** A size for people: "512 B", "1.5 KB", "20 MB". */
export function humanSize(bytes: number): string {
  if (bytes < UNIT_STEP) return `${bytes} B`;
  let value = bytes;
  let unit: string = "B";
  for (const larger of UNITS) {
    if (value < UNIT_STEP) break;
    value /= UNIT_STEP;
    unit = larger;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
