// The extension for VS Code as one file: `npm run vsix` writes editors/vscode/dist/gyre.vsix and prints its path.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { strToU8, zipSync } from "fflate";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, "editors/vscode");
/** The same bytes for the same sources. */
const MADE_AT = new Date("2026-01-01T00:00:00Z");

const CONTENT_TYPES = `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${[
  [".json", "application/json"],
  [".cjs", "application/javascript"],
  [".md", "text/markdown"],
  [".txt", "text/plain"],
  [".vsixmanifest", "text/xml"],
]
  .map(([extension, type]) => `<Default Extension="${extension}" ContentType="${type}"/>`)
  .join("")}</Types>
`;

/**
 * @typedef {{
 *   name: string, displayName: string, description: string, version: string, publisher: string,
 *   categories: string[], extensionKind: string[], engines: { vscode: string },
 * }} ExtensionManifest
 */

/** @param {ExtensionManifest} manifest */
function describePackage(manifest) {
  const { name, version, publisher, displayName, description } = manifest;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${name}" Version="${version}" Publisher="${publisher}"/>
    <DisplayName>${displayName}</DisplayName>
    <Description xml:space="preserve">${description}</Description>
    <Categories>${manifest.categories.join(",")}</Categories>
    <License>extension/LICENSE.txt</License>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${manifest.engines.vscode}"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="${manifest.extensionKind.join(",")}"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
`;
}

/** The extension in one file, as VS Code loads it. */
async function bundleExtension() {
  const build = await rolldown({
    input: join(folder, "src/extension.ts"),
    platform: "node",
    external: ["vscode"],
  });
  try {
    const { output } = await build.generate({ format: "cjs", minify: false });
    return output[0].code;
  } finally {
    await build.close();
  }
}

/** @returns {Promise<Uint8Array>} */
export async function buildVsix() {
  const manifest = readFileSync(join(folder, "package.json"), "utf8");
  const files = {
    "[Content_Types].xml": CONTENT_TYPES,
    "extension.vsixmanifest": describePackage(JSON.parse(manifest)),
    "extension/package.json": manifest,
    "extension/README.md": readFileSync(join(folder, "README.md"), "utf8"),
    "extension/LICENSE.txt": readFileSync(join(root, "LICENSE"), "utf8"),
    "extension/extension.cjs": await bundleExtension(),
  };
  const bytes = Object.entries(files).map(([path, text]) => [path, strToU8(text)]);
  return zipSync(Object.fromEntries(bytes), { mtime: MADE_AT });
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(folder, "dist/gyre.vsix");
  mkdirSync(join(folder, "dist"), { recursive: true });
  writeFileSync(path, await buildVsix());
  console.log(path);
}
