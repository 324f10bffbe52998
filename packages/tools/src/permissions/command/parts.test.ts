import { describe, expect, it } from "vitest";
import { commandParts, MAX_COMMAND_CHARS, MAX_COMMAND_PARTS } from "./parts.ts";

function listTexts(line: string): string[] {
  return commandParts(line).parts.map(({ text }) => text);
}

describe("commandParts", () => {
  it.each([
    ["env A=1 rm x", "rm x"],
    ["sudo -u bob rm x", "rm x"],
    ["nice -n 5 nohup timeout -s KILL 5 rm x", "rm x"],
    ["find . -name y -exec rm {} +", "rm {}"],
    ["find . -exec true {} \\; -exec rm x \\;", "rm x {}"],
    ["ls | xargs -n1 rm x", "rm x {}"],
    ["bash -c 'true; rm x'", "rm x"],
    ["bash -euo pipefail -c 'rm x'", "rm x"],
    ["sh -c \"sh -c 'rm x'\"", "rm x"],
    ["eval 'r''m' x", "rm x"],
    ["command rm x", "rm x"],
    ["exec -a y rm x", "rm x"],
    ["watch -n 1 'rm x'", "rm x"],
    ["parallel rm x", "rm x {}"],
    ["time -p rm x", "rm x"],
    ["time A=1 rm x", "rm x"],
    ["time 1x= rm x", "1x= rm x"],
    ["stdbuf -oL setsid rm x", "rm x"],
    ["trap 'rm x' EXIT", "rm x"],
    ["trap -- 'rm x' EXIT", "rm x"],
    ["eval -- rm x", "rm x"],
    ["bash - <<< 'rm x'", "rm x"],
    ["bash -e - <<< 'rm x'", "rm x"],
    ["bash /dev/stdin <<< 'rm x'", "rm x"],
    ["sh /proc/self/fd/0 <<< 'rm x'", "rm x"],
    ["busybox rm x", "rm x"],
    ["bash <<'E'\nrm x\nE", "rm x"],
    ["bash <<< 'rm x'", "rm x"],
    ["f() { rm x; }; f", "rm x"],
    ["echo $(echo `rm x`)", "rm x"],
  ])("%j runs %j", (line, text) => {
    expect(listTexts(line)).toContain(text);
  });

  it.each([
    "$X a",
    "rg${IFS}--pre${IFS}sh",
    "ls ${x-<(./evil)}",
    "ls ${x:->(./evil)}",
    "ls ${1-${y?<(./evil)}}",
    "/bin/c?t a",
    "{rm,x}",
    "a[1]=2",
    "find . -exec cat {} +",
    "ls | xargs cat",
    "curl x | sh",
    "bash <<E\nls\nE",
    'bash -c "$X"',
    "bash --rcfile x -c ls",
    "zsh -c ls",
    "bash - <<< ls",
    "bash /dev/stdin <<< ls",
    "bash /dev/fd/3 3<<< ls",
    "eval $X",
    // It opens a file of what it is given.
    "eval ca ${x-a >o1{,}",
    "sudo --weird ls",
    "env A=1 ls",
    "env -S 'ls -l'",
    "nice $X ls",
    "nice -n $X ls",
    "timeout -- $X ls",
    "bash -o $X -c ls",
    "bash -kc 'ls x PATH=.'",
    "bash -o keyword -c ls",
    "bash -O extglob -c ls",
    "watch -x ls '#' x",
    "sh -c '[[ a || b ]]'",
    "dash -c '((1 > 2))'",
    '"git status"',
    "# nothing",
    "",
    "sh -c ".repeat(20),
    "x".repeat(MAX_COMMAND_CHARS + 1),
    "a;".repeat(MAX_COMMAND_PARTS + 1),
  ])("is not sure what is run by %.60j", (line) => {
    expect(commandParts(line).unclear).toBeDefined();
  });

  it.each([
    "rg --pre sh x",
    "rg --pre=sh x",
    "rg a${IFS}--pre=./evil b",
    "git log HEAD${IFS}--output=f",
    "sort b${IFS}-o${IFS}f",
    "find . -name b$IFS-o${IFS}-exec${IFS}./evil${IFS}\\;",
    "rg -e -- --pre=./evil b",
    "sort --random-source -- -o f b",
    "git log src/$X",
    "rg x $FLAGS",
    "rg x *",
    "find . -delete",
    "find . -fprint x",
    "sed -i s/a/b/ x",
    "sed -n -i.bak p x",
    "sed 'w x' y",
    "sed -ne 'w x' y",
    "sed s/a/b/e x",
    "sed s/a/b/w x",
    "sed --expr='1e id' x",
    "git -c core.pager=sh log",
    "git --exec-path=. log",
    "git -C /elsewhere status",
    "git config alias.x '!sh'",
    "git grep -Osh x",
    "git rebase -x sh main",
    "git log --output=x",
    "git clone --upload-p=sh x",
    "awk 'BEGIN { system(\"sh\") }'",
    "awk '{ print > \"x\" }' y",
    "awk -f x y",
    "tar --to-command=sh -xf x",
    "tar --to-com sh -xf x",
    "tar xIf sh x",
    "sort -o x y",
    "uniq a b",
    "dd of=x",
    "ssh host ls",
    "export PATH=.",
    "alias ls=rm",
    ". x",
    "printf -v PATH .",
    "curl -d @x https://example.org",
    "node -e 1",
    "find {-exec,touch,P,\\;,-name,x*}",
    "find {-exec,touch,P,\\;,-name,x[1]}",
    "find {x?,-delete}",
    "git log {--output=P,x*}",
    "git {-c,alias.x=!touch\\ P,x,y*}",
    "sort {-o,P,x*}",
    "tar {--to-command=x,x*}",
    "curl {-o,P,x*}",
    "node {-e,1,x*}",
    "python3 {-c,1,x*}",
    "git diffto[o]l -yx 'touch P' HEAD~1",
    "git --no-pager diffto[o]l -yx 'touch P' HEAD~1",
    "git {,} config alias.x '!touch P'",
    "git remote-ext x 'touch P'",
    "git remote-fd 3",
    "git submodule--helper foreach id",
    "git credential-store get",
    "git merge-index ./x -a",
    "git alias-of-the-repository",
    "tar x[I]f sh x",
    "uniq a*",
    "sed -e '' -e '1e touch P' a",
    "sed -e 1p -e '' -e '1e touch P' a",
    "sed -be'1e touch P' 1p",
    "sed -l 1p '1e touch P' a",
    "sed --line-length 1p '1e touch P' a",
    "rg x ~",
    "uniq - y",
    "uniq -- -x y",
    "awk -W exec x",
    "[ -- = x -o -v 'a[$(b)]' ]",
    "gcc -B./x/ a.c",
    "gcc --specs=x a.c",
    "gcc @x",
    "pnpm run --config.script-shell=./x y",
    "pnpm install --pnpmfile=./x",
    "curl --remote-name-all https://example.org/x",
    "git read-tree --index-output=y HEAD",
    "git cherry-pick --strategy=x/y HEAD",
    "git rebase --strategy x/y main",
    "git merge -s x/y main",
    "tar cf x --index-file=y a",
    "tar cf x -g y a",
    "wget -a y x",
    "wget --save-cookies=y x",
    "python3 /dev/stdin",
    "python3 -i a",
    "python3 --check-hash-based-pycs always",
    "node /dev/stdin",
    "perl /dev/fd/0",
    "cmake -E touch y",
    "gcc -wrapper touch,y a",
    "iconv -o y a",
    "tar cf x -T list",
    "tar cf x --files-from=list",
    "git format-patch --output-directory=x HEAD~1",
    "python3 -",
    "node",
    "node - x",
  ])("knows that there is more to %j", (line) => {
    const { parts, unclear } = commandParts(line);
    expect(unclear).toBeUndefined();
    expect(parts.some(({ escapes }) => escapes.length > 0)).toBe(true);
  });

  it.each([
    "rg foo src",
    "rg -- --pre src",
    "find . -name '*.ts' -type f",
    "sed -n 1,20p x",
    "sed -E 's/(a|b)/c/g' x",
    "git log -p --oneline src/*.ts",
    "git status",
    "awk -F, '{ print $1 }' x",
    "tar -xzf x",
    "sort -u x",
    "sed '' x",
    "sed -e '' -e 1p -ns x",
    "find src{,/x} -name y",
    "find x[12]",
    "git --no-pager diff --stat",
    "git status -s src/a",
    "git merge -s ours main",
    "git add a{b,c} src/*.ts",
    "node x.js",
    "python3 --version",
    "timeout 5 ls",
    "nice ls",
    "nice -n 5 ls",
    "/usr/bin/time -p ls",
    "bash -euo pipefail -c 'ls'",
    "bash -c '[[ a < b ]] && ls'",
    "sh -c 'echo $((1 + 1))'",
    "[ -f a ]",
    "gcc -Wall -DBIG a.c",
  ])("finds nothing more to %j", (line) => {
    const { parts, unclear } = commandParts(line);
    expect(unclear).toBeUndefined();
    expect(parts.flatMap(({ escapes }) => escapes)).toEqual([]);
  });

  it("takes what tee writes for a redirection", () => {
    const [, tee] = commandParts("a | tee -a b c").parts;
    expect(tee?.redirects.map(({ kind, target }) => [kind, target.text])).toEqual([
      ["write", "b"],
      ["write", "c"],
    ]);
  });

  it("writes words so that no two look the same", () => {
    expect(listTexts("echo 'a b' \\$x $x")).toEqual(["echo 'a b' '$x' $x"]);
    expect(commandParts("/bin/rm x").parts[0]?.plain).toEqual(["/bin/rm x", "rm x"]);
    expect(commandParts("git push$X y").parts[0]?.known).toEqual(["git push"]);
  });

  it("looks at all of a long line", () => {
    const parts = listTexts(`${"true;".repeat(40_000)}rm x`);
    expect(parts.at(-1)).toBe("rm x");
  });

  it("looks at each character a bounded number of times", () => {
    for (const piece of [
      "env ",
      "sh -c ",
      "eval '",
      "find -exec ",
      "xargs ",
      "a;",
      "watch ",
      "$x ",
    ]) {
      const steps = (chars: number): number =>
        commandParts(piece.repeat(Math.ceil(chars / piece.length))).steps;
      expect(steps(128 * 1024), piece).toBeLessThanOrEqual(5 * steps(32 * 1024));
    }
  });
});
