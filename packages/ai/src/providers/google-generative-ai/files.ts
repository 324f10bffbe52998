import type { FileTable, FormatFiles, SentSource } from "../files/table.ts";

const MAX_IMAGE_BYTES = 7_000_000;
const MAX_PDF_BYTES = 50_000_000;
/** A request with contents in it may have 100 MB in all, base64 included. */
const MAX_MEDIA_BYTES = 70_000_000;
const IMAGES = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
/** At both services. */
const AUDIO = ["wav", "mp3", "mpeg", "ogg", "flac", "m4a", "mp4", "webm"];
const VIDEO = ["mp4", "mpeg", "quicktime", "x-flv", "mpg", "webm", "wmv", "3gpp"];
/** Other models of this service, such as Gemma, read images alone. */
const GEMINI = /gemini|learnlm/;

interface Taken {
  /** Beside contents in the request. */
  sources: readonly SentSource[];
  urls: readonly string[];
  /** Absent: any text. */
  text?: readonly string[];
  audio: readonly string[];
  video: readonly string[];
}

function takenBy({ sources: others, urls, text, audio, video }: Taken): FileTable {
  const sources = ["base64", ...others] as const;
  const media = { sources, urls, maxBytes: MAX_MEDIA_BYTES, models: GEMINI };
  return {
    image: { types: IMAGES, sources, urls, maxBytes: MAX_IMAGE_BYTES },
    pdf: { sources, urls, maxBytes: MAX_PDF_BYTES, models: GEMINI },
    text: { ...(text && { types: text }), sources: others, urls, models: GEMINI },
    audio: { ...media, types: audio.map((type) => `audio/${type}`) },
    video: { ...media, types: video.map((type) => `video/${type}`) },
  };
}

const GEMINI_API = takenBy({
  sources: ["url", "id"],
  urls: ["https:"],
  audio: [...AUDIO, "x-wav", "aiff", "aac"],
  video: [...VIDEO, "mov", "avi"],
});
/** It has no files of its own: those are in Cloud Storage. */
const VERTEX = takenBy({
  sources: ["url"],
  urls: ["https:", "gs:"],
  text: ["text/plain"],
  audio: AUDIO,
  video: VIDEO,
});

/** "File input methods", "Document", "Audio" and "Video understanding" in the documentation of each. */
export const FILES: FormatFiles = (_, { id }) => (id === "google-vertex" ? VERTEX : GEMINI_API);
