import { expect, it } from "vitest";
import { binaryKind, imageType } from "./image-type.ts";

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

it("recognizes images by their first bytes", () => {
  expect(imageType(bytes("\x89PNG\r\n\x1a\n...."))).toBe("image/png");
  expect(imageType(bytes("\xff\xd8\xff\xe0"))).toBe("image/jpeg");
  expect(imageType(bytes("GIF87a"))).toBe("image/gif");
  expect(imageType(bytes("GIF89a"))).toBe("image/gif");
  expect(imageType(bytes("RIFF\0\0\0\0WEBPVP8 "))).toBe("image/webp");
});

it("takes nothing else for an image", () => {
  for (const text of ["", "GIF", "RIFF\0\0\0\0WAVE", "\x89PNG", "PNG", "<svg/>"]) {
    expect(imageType(bytes(text))).toBeUndefined();
  }
});

it("names what people know, wherever its view of memory begins", () => {
  expect(binaryKind(bytes("xxPK\x03\x04").subarray(2))).toBe("ZIP archive");
  expect(binaryKind(bytes("\x7fELF\x02"))).toBe("ELF program");
  expect(binaryKind(bytes("\0".repeat(257) + "ustar"))).toBe("tar archive");
  expect(binaryKind(bytes("\0\x05\x06"))).toBe("binary file");
});
