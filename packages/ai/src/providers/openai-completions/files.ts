import {
  ANY_MODEL,
  type FileRule,
  type FileTable,
  type FormatFiles,
  USUAL_IMAGE_BYTES,
  USUAL_IMAGES,
} from "../files/table.ts";

const MAX_FILE_BYTES = 50_000_000;
const WAV_AND_MP3 = ["audio/wav", "audio/x-wav", "audio/vnd.wave", "audio/mpeg", "audio/mp3"];
const MANY_SOUNDS = [
  ...WAV_AND_MP3,
  ...["aiff", "aac", "ogg", "flac", "m4a", "x-m4a", "mp4"].map((type) => `audio/${type}`),
];
/** A request may have 100 MB in all, base64 included. */
const MAX_KIMI_BYTES = 70_000_000;
const PNG_AND_JPEG = ["image/png", "image/jpeg"];
const FILMS = ["video/mp4", "video/mpeg", "video/mov", "video/quicktime", "video/webm"];

const IMAGES: FileRule = {
  types: USUAL_IMAGES,
  sources: ["base64", "url"],
  maxBytes: USUAL_IMAGE_BYTES,
};
const IMAGES_HERE: FileRule = { ...IMAGES, sources: ["base64"] };
const AUDIO: FileRule = { types: WAV_AND_MP3, sources: ["base64"] };
const VIDEO: FileRule = { types: FILMS, sources: ["base64", "url"] };

const GLM_WITH_FILES = /glm-(4\.[5-9]|[5-9][\d.]*)v/;

/** Services of models that people choose themselves: what a model reads beside images, its `input` says. */
const OPEN_MODELS: FileTable = { image: IMAGES, audio: AUDIO, video: VIDEO };

/** Each service as its own pages say it. What is not there is refused. */
const SERVICES: Readonly<Record<string, FileTable>> = {
  openai: {
    image: IMAGES,
    pdf: {
      sources: ["base64", "id"],
      maxBytes: MAX_FILE_BYTES,
      models: ANY_MODEL,
      withImages: true,
    },
    audio: { ...AUDIO, models: /audio/ },
  },
  "azure-openai": { image: IMAGES, audio: { ...AUDIO, models: /audio/ } },
  openrouter: {
    image: IMAGES,
    // Of models that cannot, the gateway reads it for them.
    pdf: { sources: ["base64", "url"], maxBytes: MAX_FILE_BYTES, models: ANY_MODEL },
    audio: { types: MANY_SOUNDS, sources: ["base64"], models: /gemini|audio|voxtral|omni/ },
    video: { ...VIDEO, models: /gemini|glm-[\d.]+v|omni/ },
  },
  // A request with contents in it may have 4 MB in all, base64 included.
  groq: { image: { ...IMAGES, maxBytes: 2_900_000 } },
  xai: { image: { ...IMAGES, types: PNG_AND_JPEG } },
  deepseek: { image: IMAGES },
  mistral: {
    image: IMAGES,
    pdf: { sources: ["base64", "url", "id"], maxBytes: MAX_FILE_BYTES, models: ANY_MODEL },
    audio: { types: MANY_SOUNDS, sources: ["base64", "url"], models: /voxtral/ },
  },
  together: OPEN_MODELS,
  fireworks: { image: { ...IMAGES, types: [...PNG_AND_JPEG, "image/gif"] } },
  cerebras: { image: IMAGES },
  huggingface: { image: IMAGES },
  // Addresses on the web are not loaded here.
  moonshot: {
    image: IMAGES_HERE,
    video: {
      ...VIDEO,
      sources: ["base64"],
      maxBytes: MAX_KIMI_BYTES,
      models: /k(2\.[5-9]|[3-9])/,
    },
  },
  zai: {
    image: { ...IMAGES, types: PNG_AND_JPEG },
    pdf: { sources: ["url"], models: GLM_WITH_FILES },
    video: {
      types: ["video/mp4", "video/mov", "video/quicktime", "video/x-matroska"],
      sources: ["url"],
      models: GLM_WITH_FILES,
    },
  },
  perplexity: {
    image: { ...IMAGES, urls: ["https:"] },
    pdf: { sources: ["base64", "url"], maxBytes: MAX_FILE_BYTES, models: ANY_MODEL },
    document: {
      types: [
        "application/msword",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/rtf",
      ],
      sources: ["base64", "url"],
      maxBytes: MAX_FILE_BYTES,
    },
  },
  "github-models": { image: IMAGES_HERE },
  lmstudio: { image: { ...IMAGES_HERE, types: [...PNG_AND_JPEG, "image/webp"] } },
  llamacpp: { image: IMAGES, audio: AUDIO },
  vllm: {
    image: IMAGES,
    audio: { types: MANY_SOUNDS, sources: ["base64", "url"] },
    video: VIDEO,
  },
};

/** Of a service that is not known: the forms that OpenAI and open servers have, as `input` of the model says. */
const OTHERS: FileTable = {
  ...OPEN_MODELS,
  pdf: { sources: ["base64"], maxBytes: MAX_FILE_BYTES },
};

export const FILES: FormatFiles = (_, { id }) => SERVICES[id] ?? OTHERS;
