const OFFICE = "application/vnd.openxmlformats-officedocument";

const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  bmp: "image/bmp",
  tiff: "image/tiff",
  avif: "image/avif",
  pdf: "application/pdf",
  doc: "application/msword",
  docx: `${OFFICE}.wordprocessingml.document`,
  ppt: "application/vnd.ms-powerpoint",
  pptx: `${OFFICE}.presentationml.presentation`,
  xls: "application/vnd.ms-excel",
  xlsx: `${OFFICE}.spreadsheetml.sheet`,
  odt: "application/vnd.oasis.opendocument.text",
  rtf: "application/rtf",
  wav: "audio/wav",
  mp3: "audio/mpeg",
  m4a: "audio/mp4",
  aac: "audio/aac",
  ogg: "audio/ogg",
  opus: "audio/opus",
  flac: "audio/flac",
  aiff: "audio/aiff",
  mp4: "video/mp4",
  mov: "video/quicktime",
  mkv: "video/x-matroska",
  webm: "video/webm",
  avi: "video/avi",
  mpeg: "video/mpeg",
  mpg: "video/mpeg",
  wmv: "video/x-ms-wmv",
  flv: "video/x-flv",
  "3gp": "video/3gpp",
  txt: "text/plain",
  md: "text/markdown",
  csv: "text/csv",
  html: "text/html",
  xml: "application/xml",
  json: "application/json",
};

/**
 * The media type of what people name so, by the end of the name or of the path of an address; nothing
 * for one that is not known. What is in a file is not looked at.
 */
export function guessMediaType(name: string): string | undefined {
  const [path = ""] = name.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, "").split(/[?#]/);
  const end = /\.([a-z0-9]{1,8})$/i.exec(path)?.[1]?.toLowerCase();
  return end === undefined ? undefined : TYPES[end];
}
