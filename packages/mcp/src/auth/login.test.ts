import { describe, expect, it } from "vitest";
import { loopbackLogin, type McpLogin } from "./login.ts";

const PAGE = new URL("https://login.example/authorize?state=right");

async function withLogin(
  options: Partial<Parameters<typeof loopbackLogin>[0]>,
  use: (login: McpLogin) => Promise<void>,
): Promise<void> {
  const login = await loopbackLogin({ show: () => {}, ...options });
  try {
    await use(login);
  } finally {
    await login.close?.();
  }
}

describe("a login by a browser on this machine", () => {
  it("gets what the browser brings back, and nothing that others send", async () => {
    const shown: URL[] = [];
    await withLogin({ show: (url) => void shown.push(url) }, async (login) => {
      const back = login.authorize(PAGE, new AbortController().signal);
      const send = async (path: string, method = "GET"): Promise<number> =>
        (await fetch(new URL(path, login.redirectUrl), { method })).status;
      expect(await send("/callback?state=wrong&code=evil")).toBe(404);
      expect(await send("/callback?code=evil")).toBe(404);
      expect(await send("/other?state=right&code=evil")).toBe(404);
      expect(await send("/callback?state=right&code=evil", "POST")).toBe(404);
      expect(await send("/callback?state=right&code=good")).toBe(200);
      expect((await back).searchParams.get("code")).toBe("good");
      expect(shown).toEqual([PAGE]);
      expect(await send("/callback?state=right&code=late")).toBe(404);
    });
  });

  it("listens on this machine alone", async () => {
    await withLogin({}, async (login) => {
      expect(new URL(login.redirectUrl).hostname).toBe("127.0.0.1");
    });
  });

  it("takes the address that a person pastes", async () => {
    const paste = () => Promise.resolve(" http://127.0.0.1:9/callback?state=right&code=pasted\n");
    await withLogin({ paste }, async (login) => {
      const back = await login.authorize(PAGE, new AbortController().signal);
      expect(back.searchParams.get("code")).toBe("pasted");
    });
  });

  it("says what to paste where that is no address", async () => {
    await withLogin({ paste: () => Promise.resolve("code") }, async (login) => {
      await expect(login.authorize(PAGE, new AbortController().signal)).rejects.toThrow(
        "paste all of what the browser shows",
      );
    });
  });

  it("ends with its signal, and stops waiting for a paste", async () => {
    const controller = new AbortController();
    let pasteSignal: AbortSignal | undefined;
    const paste = (signal: AbortSignal) => {
      pasteSignal = signal;
      return new Promise<string>(() => {});
    };
    await withLogin({ paste }, async (login) => {
      const back = login.authorize(PAGE, controller.signal);
      controller.abort(new Error("enough"));
      await expect(back).rejects.toThrow("enough");
      expect(pasteSignal?.aborted).toBe(true);
    });
  });

  it("rejects where its port is taken", async () => {
    await withLogin({}, async (login) => {
      const port = Number(new URL(login.redirectUrl).port);
      await expect(loopbackLogin({ show: () => {}, port })).rejects.toThrow("EADDRINUSE");
    });
  });
});
