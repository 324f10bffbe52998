import { listenForLogin } from "@gyre/ai/network";

/** How a person lets us in. Opened for one login. */
export interface McpLogin {
  /** Where the browser is sent back to. */
  readonly redirectUrl: string;
  /**
   * Has a person open the address, and gives the one that the browser was sent back to, with its
   * parameters. Rejects where the person does not want to, or when the signal aborts.
   */
  authorize(url: URL, signal: AbortSignal): Promise<URL>;
  close?(): void | Promise<void>;
}

export interface LoopbackLoginOptions {
  /** Shows the address to the person, and opens a browser where there is one. */
  show: (url: URL) => void | Promise<void>;
  /**
   * Gives the address that a browser of another machine was sent back to, as the person copied it:
   * it could not load there. Default: none is waited for.
   */
  paste?: (signal: AbortSignal) => Promise<string>;
  /** Default: one that is free. */
  port?: number;
}

/**
 * A login by a browser that is sent back to this machine. Listens on the loopback alone, until it is
 * closed. Rejects where the port is taken.
 */
export async function loopbackLogin(options: LoopbackLoginOptions): Promise<McpLogin> {
  const { port } = options;
  const callback = await listenForLogin(port === undefined ? {} : { port });
  return {
    redirectUrl: callback.url,
    async authorize(url, signal) {
      const over = new AbortController();
      const either = AbortSignal.any([signal, over.signal]);
      const back = callback.wait(url.searchParams.get("state") ?? "", either);
      back.catch(() => {});
      try {
        await options.show(url);
        if (!options.paste) return await back;
        return await Promise.race([back, options.paste(either).then(parsePasted)]);
      } finally {
        over.abort();
      }
    },
    close: () => callback.close(),
  };
}

function parsePasted(text: string): URL {
  try {
    return new URL(text.trim());
  } catch (error) {
    throw new Error(
      `That is not an address: paste all of what the browser shows after the login, from http:// on.`,
      { cause: error },
    );
  }
}
