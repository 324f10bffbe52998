/** Where the socket of the proxy is inside of the sandbox: bwrap makes /dev itself. */
export const PROXY_SOCKET = "/dev/gyre-proxy";
/** Each command has a network of its own: the port is free. Above those that the kernel gives out. */
const PROXY_PORT = 61_128;
const PROXY_ADDRESS = `http://127.0.0.1:${PROXY_PORT}`;

/**
 * Runs inside: takes connections on the port, passes them on to the socket, starts the command, and ends as it does.
 * A text, so that no file has to be found.
 */
const SCRIPT = `
const net = require("net");
const [path, port, file, ...args] = process.argv.slice(1);
const server = net.createServer({ allowHalfOpen: true }, (client) => {
  const proxy = net.connect({ path, allowHalfOpen: true });
  for (const [from, to] of [[client, proxy], [proxy, client]]) {
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.on("close", () => from.readableEnded || to.destroy());
  }
});
server.on("error", (error) => {
  console.error(error.message);
  process.exit(126);
});
server.listen(Number(port), "127.0.0.1", () => {
  const child = require("child_process").spawn(file, args, { stdio: "inherit" });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(error.message);
    process.exit(127);
  });
  child.on("exit", (code, signal) =>
    process.exit(signal ? 128 + require("os").constants.signals[signal] : code),
  );
});`;

/** The arguments of a program that runs another with a way to the proxy. */
export function forwarderArguments(argv: readonly string[]): string[] {
  return [process.execPath, "-e", SCRIPT, "--", PROXY_SOCKET, String(PROXY_PORT), ...argv];
}

/** The variables by which programs find the proxy. */
export const PROXY_ENVIRONMENT: Readonly<Record<string, string>> = {
  HTTP_PROXY: PROXY_ADDRESS,
  HTTPS_PROXY: PROXY_ADDRESS,
  http_proxy: PROXY_ADDRESS,
  https_proxy: PROXY_ADDRESS,
  NO_PROXY: "localhost,127.0.0.1,::1",
  no_proxy: "localhost,127.0.0.1,::1",
  npm_config_proxy: PROXY_ADDRESS,
  npm_config_https_proxy: PROXY_ADDRESS,
  npm_config_noproxy: "localhost,127.0.0.1,::1",
  YARN_HTTP_PROXY: PROXY_ADDRESS,
  YARN_HTTPS_PROXY: PROXY_ADDRESS,
  // fetch of Node has asked for this since version 24.
  NODE_USE_ENV_PROXY: "1",
};
