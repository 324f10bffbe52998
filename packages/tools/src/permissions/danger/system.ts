import { hasOption, listOperands } from "./options.ts";

/** Change the machine or its user's own settings, or act on what others started. */
const SYSTEM = new Set(
  (
    "pkill killall crontab at batch service launchctl mount umount iptables nft ufw useradd userdel usermod groupadd " +
    "passwd chsh visudo sysctl modprobe insmod rmmod swapoff swapon ssh-keygen ssh-add gpg security tmux screen code " +
    "dbus-send gdbus busctl open xdg-open osascript dpkg rpm ldconfig update-alternatives chattr setfacl setfattr setcap"
  ).split(" "),
);

/** Whether a program acts on more than the workspace, by what it is. */
export function changesSystem(program: string, args: readonly string[]): boolean {
  if (args.length === 1 && /^--?(?:version|help|V)$/.test(args[0] ?? "")) return false;
  if (SYSTEM.has(program)) return true;
  const [first, second] = listOperands(program, args);
  switch (program) {
    case "kill":
      return args.some((arg) => /^[1-9]\d*$/.test(arg)) && !args.includes("-l");
    case "fuser":
      return hasOption(args, "--kill", /k/);
    case "systemctl":
      return !/^(?:status|is-active|is-enabled|list-\w+|show|cat)$/.test(first ?? "status");
    case "hostname":
      return first !== undefined;
    case "ip":
    case "ifconfig":
      return args.some((arg) => /^(?:set|add|del|delete|flush|up|down)$/.test(arg));
    case "git":
      return (
        first === "config" &&
        (hasOption(args, "--global") || hasOption(args, "--system")) &&
        !args.some((arg) => /^--(?:get|list)|^-l$/.test(arg))
      );
    case "npm":
    case "pnpm":
    case "yarn":
    case "pip":
      return first === "config" && /^(?:set|delete|edit)$/.test(second ?? "");
    case "go":
      return first === "env" && hasOption(args, undefined, /^[wu]/);
    case "make":
    case "ninja":
      return args.some((arg) => /^(?:un)?install$/.test(arg));
    case "cmake":
      return args.includes("--install");
    default:
      return /^python[\d.]*$/.test(program) && first === "setup.py" && second === "install";
  }
}
