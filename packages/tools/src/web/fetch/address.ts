import { isIP } from "node:net";
import { toUrl } from "@gyre/ai";
import { addressRefusal, readHost } from "@gyre/ai/network";

export const MAX_URL_CHARS = 2_048;

/** An address as a URL. Throws if it is not one that may be fetched at all. */
export function parseUrl(text: string): URL {
  if (text.length > MAX_URL_CHARS) {
    throw new Error(`The address is longer than ${MAX_URL_CHARS} characters.`);
  }
  const url = toUrl(text);
  if (!url) {
    throw new Error(`"${text}" is not a whole address. Write it as https://host/path.`);
  }
  if (url.protocol !== "https:") {
    throw new Error(
      `Only https is fetched, and "${text}" is ${url.protocol.slice(0, -1)}. Use an https address.`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new Error(
      `The address of ${url.host} has a user name or password in it. Leave them out.`,
    );
  }
  const host = readHost(url);
  if (isIP(host)) refuseAddress(host, host);
  url.hash = "";
  return url;
}

/** Throws where `address`, to which `host` leads, is not one of the public internet. */
export function refuseAddress(host: string, address: string): void {
  const refusal = addressRefusal(address);
  if (refusal === undefined) return;
  const leads = host === address ? "" : ` leads to ${address}, which`;
  throw new Error(
    `${host}${leads} is not fetched: ${refusal}. Only addresses of the public internet are.`,
  );
}
