import type { ApiProvider } from "../../client/registry.ts";
import type { ProviderConfig } from "../http/exchange.ts";
import { createProviders } from "../index.ts";
import type { FormatFixture } from "./format-fixture.ts";

/** A format of this package, as its tests use it. */
export interface TestedFormat extends FormatFixture {
  api: string;
  create: (config: ProviderConfig) => ApiProvider;
}

/** The formats of this package that have a `request-check.ts`, in the order of their names. */
export const FORMATS: readonly TestedFormat[] = await loadFormats();

/** The format of this name. Throws if there is none. */
export function findFormat(api: string): TestedFormat {
  const format = FORMATS.find((one) => one.api === api);
  if (!format) throw new Error(`The format "${api}" has no request-check.ts in its folder.`);
  return format;
}

async function loadFormats(): Promise<TestedFormat[]> {
  const formats: TestedFormat[] = [];
  for (const { api } of createProviders().list()) {
    const { fixture }: { fixture: FormatFixture } = await import(`../${api}/request-check.ts`);
    formats.push({ ...fixture, api, create: (config) => getProvider(api, config) });
  }
  return formats;
}

function getProvider(api: string, config: ProviderConfig): ApiProvider {
  const provider = createProviders(config).get(api);
  if (!provider) throw new Error(`There is no format "${api}".`);
  return provider;
}
