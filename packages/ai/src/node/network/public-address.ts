import { BlockList, isIPv4, isIPv6 } from "node:net";

/** Networks of IPv4 that are not the public internet, with what they are. */
const PRIVATE_V4: readonly (readonly [network: string, bits: number, what: string])[] = [
  ["0.0.0.0", 8, "this host"],
  ["10.0.0.0", 8, "a private network"],
  ["100.64.0.0", 10, "a carrier's network"],
  ["127.0.0.0", 8, "this machine"],
  ["168.63.129.16", 32, "a cloud's metadata"],
  ["169.254.0.0", 16, "link-local, with clouds' metadata"],
  ["172.16.0.0", 12, "a private network"],
  ["192.0.0.0", 24, "reserved"],
  ["192.0.2.0", 24, "for documentation"],
  ["192.88.99.0", 24, "a relay"],
  ["192.168.0.0", 16, "a private network"],
  ["198.18.0.0", 15, "for measurements"],
  ["198.51.100.0", 24, "for documentation"],
  ["203.0.113.0", 24, "for documentation"],
  ["224.0.0.0", 4, "multicast"],
  ["240.0.0.0", 4, "reserved"],
];

/** Of IPv6 all that is public lies in here. */
const PUBLIC_V6 = ["2000::", 3] as const;

/** ... but for these. */
const SPECIAL_V6: readonly (readonly [network: string, bits: number, what: string])[] = [
  ["2001::", 23, "reserved, with tunnels"],
  ["2001:db8::", 32, "for documentation"],
  ["2002::", 16, "a tunnel (6to4)"],
  ["3fff::", 20, "for documentation"],
];

/** Addresses of IPv6 that stand for one of IPv4, which is in their last 32 bits. */
const EMBEDDING_V6: readonly (readonly [network: string, bits: number])[] = [
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96],
];

const privateV4 = PRIVATE_V4.map(([network, bits, what]) => ({
  what,
  list: createBlockList(network, bits, "ipv4"),
}));
const specialV6 = SPECIAL_V6.map(([network, bits, what]) => ({
  what,
  list: createBlockList(network, bits, "ipv6"),
}));
const embeddingV6 = EMBEDDING_V6.map(([network, bits]) => createBlockList(network, bits, "ipv6"));
const publicV6 = createBlockList(...PUBLIC_V6, "ipv6");

const BYTE = 256;
const HEX = 16;

/**
 * Why a connection to this address is not made, or undefined for one of the public
 * internet. What is not known to be public is refused. Takes addresses as a lookup gives
 * them; anything else is refused as well.
 */
export function addressRefusal(address: string): string | undefined {
  if (isIPv4(address)) {
    return privateV4.find(({ list }) => list.check(address, "ipv4"))?.what;
  }
  // With a zone ("%eth0") it is an address of one link.
  if (!isIPv6(address) || address.includes("%")) return "not an address of the internet";
  if (embeddingV6.some((list) => list.check(address, "ipv6"))) {
    return addressRefusal(embeddedV4(address));
  }
  if (!publicV6.check(address, "ipv6")) return "not public";
  return specialV6.find(({ list }) => list.check(address, "ipv6"))?.what;
}

/** The last 32 bits as an address of IPv4. */
function embeddedV4(address: string): string {
  // A URL writes any form in one way: groups of hexadecimal digits, without leading zeros.
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [high = "", low = ""] = plain.split(":").slice(-2);
  return [high, low]
    .map((group) => Number.parseInt(group || "0", HEX))
    .flatMap((group) => [Math.floor(group / BYTE), group % BYTE])
    .join(".");
}

function createBlockList(network: string, bits: number, family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  list.addSubnet(network, bits, family);
  return list;
}

/** Without the brackets that a URL has around IPv6. */
export function readHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}
