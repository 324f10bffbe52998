import { createInterface } from "node:readline";
import { loopbackLogin, type Mcp, McpError, type McpLogin } from "@gyre/mcp";
import { EXIT, type ExitCode, ExitError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import { hasBrowser, openBrowser } from "../../core/open-browser.ts";
import { plain } from "../../text/mcp-text.ts";

/** A person who has not come back by then does not. */
const LOGIN_MS = 600_000;

/** `gyre mcp login NAME`: has the user log in with a browser, here or on another machine. */
export async function logIn(mcp: Mcp, name: string, io: Io): Promise<ExitCode> {
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(LOGIN_MS)]);
  try {
    await mcp.logIn(name, signal);
  } catch (error) {
    if (io.signal.aborted) throw io.signal.reason;
    if (signal.aborted) {
      const minutes = LOGIN_MS / 60_000;
      throw new ExitError(EXIT.failed, `No browser came back within ${minutes} minutes.`);
    }
    if (!(error instanceof McpError)) throw error;
    const words = error.words === undefined ? "" : ` It said: ${error.words}`;
    throw new ExitError(EXIT.failed, plain(`${error.message}${words}`), { cause: error });
  }
  const count = mcp.status().find((server) => server.name === name)?.tools.length ?? 0;
  io.stdout.write(
    `You are logged in to ${plain(name)}: ${count} ${count === 1 ? "tool" : "tools"}.\n`,
  );
  return EXIT.done;
}

/** `gyre mcp logout NAME`: forgets the login. */
export function logOut(mcp: Mcp, name: string, io: Io): ExitCode {
  try {
    mcp.logOut(name);
  } catch (error) {
    if (!(error instanceof McpError)) throw error;
    throw new ExitError(EXIT.failed, plain(error.message), { cause: error });
  }
  io.stdout.write(`The login to ${plain(name)} was removed from this machine.\n`);
  return EXIT.done;
}

/** The page is shown, and opened where there is a browser; the address it ends at may be pasted in its place. */
export function openTerminalLogin(io: Io): (options: { port?: number }) => Promise<McpLogin> {
  return async ({ port }) => {
    try {
      return await loopbackLogin({
        ...(port !== undefined && { port }),
        show: async (url) => {
          io.stderr.write(`Open this page to log in:\n\n  ${url.href}\n\n`);
          const isOpen = hasBrowser(io.env) && (await openBrowser(url, io.env));
          const where = isOpen ? "It was opened in your browser." : "There is no browser here.";
          io.stderr.write(
            `${where} With a browser on another machine, log in there, and paste the address that it ends at, though it does not load:\n`,
          );
        },
        paste: (signal) => readLine(io, signal),
      });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
      throw new ExitError(EXIT.failed, `The port ${port} of oauth.callbackPort is in use.`);
    }
  };
}

/** One line of standard input; never where it ends without one. */
function readLine(io: Io, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: io.stdin });
  signal.addEventListener("abort", () => lines.close(), { once: true });
  return new Promise((resolve) => {
    lines.on("line", (line) => {
      if (line.trim() === "") return;
      lines.close();
      resolve(line);
    });
  });
}
