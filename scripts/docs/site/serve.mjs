import { createServer } from "node:http";
import { posix } from "node:path";

/** @type {Readonly<Record<string, string>>} */
const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * Serves the files of a site, and nothing else, below a path.
 *
 * @param {ReadonlyMap<string, string>} files
 * @param {{ base?: string, port?: number }} [options] Default: `/`, and a free port
 */
export async function serveSite(files, { base = "/", port = 0 } = {}) {
  const server = createServer(({ url = "/" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const path = pathname.startsWith(base) ? decodePath(pathname.slice(base.length)) : undefined;
    const text =
      path === undefined ? undefined : files.get(/(^|\/)$/.test(path) ? `${path}index.html` : path);
    response.statusCode = text === undefined ? 404 : 200;
    response.setHeader(
      "content-type",
      TYPES[text === undefined ? "" : posix.extname(path || "index.html")] ??
        "text/html; charset=utf-8",
    );
    response.end(text ?? "There is no such page.");
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(undefined));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return {
    address: `http://127.0.0.1:${address.port}${base}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** @param {string} path @returns {string | undefined} nothing where it is no path */
function decodePath(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
