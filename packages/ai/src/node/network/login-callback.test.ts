import { describe, expect, it } from "vitest";
import { listenForLogin, type LoginCallback, type LoginCallbackOptions } from "./login-callback.ts";

async function withCallback(
  options: LoginCallbackOptions,
  use: (callback: LoginCallback) => Promise<void>,
): Promise<void> {
  const callback = await listenForLogin(options);
  try {
    await use(callback);
  } finally {
    await callback.close();
  }
}

describe("the place that a login comes back to", () => {
  it("takes the address with the state of its wait, once, and no other", async () => {
    await withCallback({ path: "/back", name: "Acme" }, async (login) => {
      const { url } = login;
      expect(new URL(url)).toMatchObject({ hostname: "127.0.0.1", pathname: "/back" });
      const send = async (query: string, method = "GET"): Promise<[number, string]> => {
        const response = await fetch(new URL(query, url), { method });
        return [response.status, await response.text()];
      };
      const gone = [404, "Nothing here."];
      expect(await send("/back?state=right&code=early")).toEqual(gone);
      const back = login.wait("right");
      expect(await send("/back?state=wrong&code=evil")).toEqual(gone);
      expect(await send("/back?state=righ&code=evil")).toEqual(gone);
      expect(await send("/back?code=evil")).toEqual(gone);
      expect(await send("/callback?state=right&code=evil")).toEqual(gone);
      expect(await send("/back?state=right&code=evil", "POST")).toEqual(gone);
      expect(await send("/back?state=right&code=good")).toEqual([
        200,
        "You are logged in at Acme. You can close this page.",
      ]);
      expect((await back).searchParams.get("code")).toBe("good");
      expect(await send("/back?state=right&code=late")).toEqual(gone);
    });
  });

  it.each(["error=access_denied", "code=", "error=access_denied&code=x"])(
    "gives an address without a code, and its page says so: %s",
    async (query) => {
      await withCallback({}, async (login) => {
        const { url } = login;
        const back = login.wait("right");
        const response = await fetch(`${url}?state=right&${query}`);
        expect([response.status, await response.text()]).toEqual([
          400,
          "The login has failed. You can close this page.",
        ]);
        expect((await back).search).toBe(`?state=right&${query}`);
      });
    },
  );

  it("takes nothing where it waits without a state", async () => {
    await withCallback({}, async (login) => {
      const { url } = login;
      void login.wait("").catch(() => {});
      expect((await fetch(`${url}?code=evil`)).status).toBe(404);
      expect((await fetch(`${url}?state=&code=evil`)).status).toBe(404);
    });
  });

  it("stops waiting with its signal, and may wait again", async () => {
    await withCallback({}, async (login) => {
      const { url } = login;
      const control = new AbortController();
      const left = login.wait("one", control.signal);
      control.abort(new Error("enough"));
      await expect(left).rejects.toThrow("enough");
      await expect(login.wait("one", control.signal)).rejects.toThrow("enough");
      const back = login.wait("two");
      expect((await fetch(`${url}?state=one&code=x`)).status).toBe(404);
      expect((await fetch(`${url}?state=two&code=x`)).status).toBe(200);
      expect((await back).searchParams.get("code")).toBe("x");
    });
  });

  it("rejects where its port is taken, and frees it", async () => {
    let port = 0;
    await withCallback({}, async ({ url }) => {
      port = Number(new URL(url).port);
      await expect(listenForLogin({ port })).rejects.toThrow("EADDRINUSE");
    });
    await withCallback({ port }, async () => {});
  });
});
