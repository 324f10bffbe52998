import { closeSync, constants, openSync, readSync } from "node:fs";

const COMPARED_BYTES = 64 * 1024;
/** What turns out to be a pipe does not block. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** Whether two files hold the same. Throws where one cannot be read. */
export function haveSameBytes(one: Buffer, other: Buffer): boolean {
  const a = openSync(one, READ);
  try {
    const b = openSync(other, READ);
    try {
      const [left, right] = [Buffer.alloc(COMPARED_BYTES), Buffer.alloc(COMPARED_BYTES)];
      for (;;) {
        const length = readSync(a, left);
        if (length !== readSync(b, right)) return false;
        if (length === 0) return true;
        if (left.compare(right, 0, length, 0, length) !== 0) return false;
      }
    } finally {
      closeSync(b);
    }
  } finally {
    closeSync(a);
  }
}
