import { assertModel } from "../calls/assert-model.ts";
import { type CallOptions, callService } from "../calls/call.ts";
import type { FileContent, Model, Usage } from "../messages/messages.ts";
import { computeCost } from "../messages/usage.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import { OptionError } from "../providers/options/apply.ts";
import {
  findImageService,
  IMAGEN,
  type ImageWish,
  type RawImage,
  type RawImages,
} from "./services.ts";

/** What may be asked of `generateImage`; `onPayload` is for what only one service has. */
export interface ImageOptions extends CallOptions, ImageWish {}

/** Images that a model made, as files that a message can hold. */
export interface GeneratedImages {
  images: FileContent[];
  /** What the model wrote beside them, where it does. */
  text?: string;
  usage: Usage;
}

const WISHES: Readonly<Record<keyof ImageWish, true>> = { n: true, size: true, aspectRatio: true };

/**
 * Makes images of a description. `config` says how services are reached: `createProviderConfig()` of
 * `@gyre/ai/node` has the keys and proxies of this machine. Rejects with a `ProviderError`: before any
 * request where the service makes no images (`bad_request`) or does not have an option (`OptionError`),
 * and as `refused` where its rules do not allow the image.
 */
export async function generateImage(
  config: ProviderConfig,
  model: Model,
  prompt: string,
  options: ImageOptions = {},
): Promise<GeneratedImages> {
  assertModel(model);
  const service = findImageService(model);
  if (!service) {
    if (IMAGEN.test(model.id)) {
      throw badRequest(
        `Google has switched off Imagen ("${model.id}"). Use a Gemini model that makes images, such as gemini-3.1-flash-image.`,
      );
    }
    throw badRequest(
      `"${model.provider}" makes no images. Use a model of openai, google, google-vertex, xai, or of a server of your own.`,
    );
  }
  if (prompt.trim() === "") throw badRequest("The prompt of the image is empty.");
  const { aspectRatio, n, size, ...rest } = options;
  const wish: ImageWish = {
    ...(n !== undefined && { n }),
    ...(size !== undefined && { size }),
    ...(aspectRatio !== undefined && { aspectRatio }),
  };
  for (const name of Object.keys(WISHES) as (keyof ImageWish)[]) {
    if (wish[name] === undefined || service.has.has(name)) continue;
    const known = [...service.has].join(", ");
    throw new OptionError(
      name,
      `Images of "${model.id}" at ${model.provider} have no ${name}. Known: ${known}.`,
    );
  }
  if (n !== undefined && !(Number.isInteger(n) && n > 0)) {
    throw new OptionError("n", `n is ${n}: write a whole number above 0.`);
  }
  return callService(
    config,
    model,
    {
      write: (request) => service.write(prompt, request, wish),
      read: (body) => toImages(service.read(body), model),
    },
    rest,
  );
}

function toImages(
  { images: raw, refusal, text, usage = {} }: RawImages,
  model: Model,
): GeneratedImages {
  const images = raw.flatMap((image) => toFile(image) ?? []);
  if (images.length === 0) {
    const why = typeof refusal === "string" ? ` It says: ${refusal}` : "";
    throw refusal === undefined
      ? new ProviderError("The service made no image. Try again.", { kind: "empty" })
      : new ProviderError(`The service refused to make the image.${why} Change the prompt.`, {
          kind: "refused",
          retryable: false,
        });
  }
  const cost = usage.cost ?? computeCost(usage, model.price);
  return { images, ...(text && { text }), usage: cost ? { ...usage, cost } : usage };
}

/** How the base64 of an image begins, for services that do not say what it is. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ["/9j/", "image/jpeg"],
  ["UklGR", "image/webp"],
];

function toFile({ data, mediaType, url }: RawImage): FileContent | undefined {
  const known = typeof mediaType === "string" ? mediaType : undefined;
  if (typeof data === "string" && data !== "") {
    const found = BEGINNINGS.find(([beginning]) => data.startsWith(beginning))?.[1];
    const source = { type: "base64", data } as const;
    return { type: "file", mediaType: known ?? found ?? "image/png", source };
  }
  if (typeof url !== "string" || url === "") return undefined;
  return { type: "file", mediaType: known ?? "image/png", source: { type: "url", url } };
}

function badRequest(message: string): ProviderError {
  return new ProviderError(message, { kind: "bad_request", retryable: false });
}
