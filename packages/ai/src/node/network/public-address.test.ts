import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addressRefusal } from "./public-address.ts";

const PUBLIC = [
  ...["1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.15.255.255"],
  ...["172.32.0.0", "169.253.0.1", "192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255"],
  ...["2606:4700:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "3ffe::1"],
  ...["::ffff:8.8.8.8", "::ffff:808:808", "64:ff9b::8.8.8.8"],
];

const REFUSED = [
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200"],
  ...["127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1"],
  ...["172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.19.255.255"],
  ...["198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1"],
  "255.255.255.255",
  ...["::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "fc00::1", "fd00:ec2::254"],
  ...["ff02::1", "2001::1", "2001:db8::1", "2001:10::1", "2002:7f00:1::", "2002:808:808::"],
  ...["3fff::1", "5f00::1", "100::1", "64:ff9b:1::1", "::7f00:1", "::8.8.8.8"],
  ...["::ffff:127.0.0.1", "::ffff:7f00:1", "::FFFF:169.254.169.254", "0:0:0:0:0:ffff:a00:1"],
  ...["::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::"],
  ...["", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "1.2.3", "[::1]", "::1 "],
];

describe("addressRefusal", () => {
  it.each(PUBLIC)("lets %s pass", (address) => {
    expect(addressRefusal(address)).toBeUndefined();
  });

  it.each(REFUSED)("refuses %s", (address) => {
    expect(addressRefusal(address)).toBeTypeOf("string");
  });

  it("judges an address of IPv4 the same however IPv6 dresses it", () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(byte, byte, byte, byte), ([a, b, c, d]) => {
        const plain = [a, b, c, d].join(".");
        const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
        const expected = addressRefusal(plain);
        for (const dressed of [`::ffff:${plain}`, `::ffff:${hex}`, `64:ff9b::${hex}`]) {
          expect(addressRefusal(dressed), dressed).toBe(expected);
        }
      }),
      { numRuns: 500 },
    );
  });
});
