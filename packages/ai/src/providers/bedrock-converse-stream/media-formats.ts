import type {
  AudioFormat,
  DocumentFormat,
  ImageFormat,
  VideoFormat,
} from "@aws-sdk/client-bedrock-runtime";

/** What the service calls a media type. */
export type MediaFormat = AudioFormat | DocumentFormat | ImageFormat | VideoFormat;

const FORMATS: Readonly<Record<string, MediaFormat>> = {
  "image/png": "png",
  "image/jpeg": "jpeg",
  "image/gif": "gif",
  "image/webp": "webp",
  "application/pdf": "pdf",
  "application/msword": "doc",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
  "application/vnd.ms-excel": "xls",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
  "video/x-matroska": "mkv",
  "video/quicktime": "mov",
  "video/mp4": "mp4",
  "video/webm": "webm",
  "video/x-flv": "flv",
  "video/mpeg": "mpeg",
  "video/x-ms-wmv": "wmv",
  "video/3gpp": "three_gp",
  "audio/mpeg": "mp3",
  "audio/mp3": "mp3",
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/aac": "aac",
  "audio/flac": "flac",
  "audio/mp4": "m4a",
  "audio/ogg": "ogg",
  "audio/opus": "opus",
  "audio/webm": "webm",
};

/** Those of a kind that have a word: `image`, `video`, `audio`, `application`. */
export function listMediaTypes(kind: string): readonly string[] {
  return Object.keys(FORMATS).filter((type) => type.startsWith(`${kind}/`));
}

/** What has no word of its own is refused before a request is written; any text is `txt`. */
export function findMediaFormat(mediaType: string): MediaFormat {
  return FORMATS[mediaType.toLowerCase()] ?? "txt";
}
