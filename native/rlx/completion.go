package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

// The completion command lists all commands, itself included, so it gets its function in init.
var completionCommand = command{
	name: "completion", args: "SHELL", short: "write the completion of a shell: bash, zsh or fish",
	long: `Writes a script by which a shell completes commands and flags:

  bash   source <(rlx completion bash)
  zsh    source <(rlx completion zsh)
  fish   rlx completion fish | source`,
}

func init() {
	completionCommand.define = func(*flag.FlagSet) runner {
		return func(_ context.Context, std stdio, args []string) error {
			shell, err := one(args, "SHELL")
			if err != nil {
				return err
			}
			write, ok := shells[shell]
			if !ok {
				return usagef("unknown shell %q: have bash, zsh and fish", shell)
			}
			write(std.out)
			return nil
		}
	}
}

var shells = map[string]func(w io.Writer){"bash": writeBash, "zsh": writeZsh, "fish": writeFish}

// commandNames returns the names of all commands.
func commandNames() (names []string) {
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return append(names, "help")
}

// flagNames returns the flags of a command as they are written.
func (c *command) flagNames() (names []string) {
	f := c.flags()
	c.define(f)
	f.VisitAll(func(x *flag.Flag) { names = append(names, "-"+x.Name) })
	return names
}

// values returns the words that a flag may have; none for one that has other values.
func (c *command) values(name string) []string {
	switch name {
	case "-activations":
		return []string{"0", "8"}
	case "-device":
		return []string{"coreml", "cpu", "cuda", "metal", "webgpu"}
	case "-dtype":
		return []string{"f32", "f16", "bf16"}
	case "-optimizer":
		return optimizerNames()
	case "-part":
		return []string{"graph", "groups", "kernels", "memory", "source"}
	case "-precision":
		return []string{"f32", "tf32", "bf16", "f16"}
	case "-quantize":
		return []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"}
	case "-target":
		if c.name == "plan" {
			return []string{"webgpu", "wasm"}
		}
		return targetNames()
	}
	return nil
}

func writeBash(w io.Writer) {
	fmt.Fprintf(w, `_rlx() {
  local word="${COMP_WORDS[COMP_CWORD]}" words="" values=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "%s" -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}" in
`, strings.Join(commandNames(), " "))
	for _, c := range commands() {
		for _, name := range c.flagNames() {
			if values := c.values(name); values != nil {
				fmt.Fprintf(w, "    %q) values=%q ;;\n", c.name+" "+name, strings.Join(values, " "))
			}
		}
	}
	fmt.Fprint(w, `  esac
  if [ -n "$values" ]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]}" in
`)
	for _, c := range commands() {
		if names := c.flagNames(); len(names) > 0 {
			fmt.Fprintf(w, "    %s) words=\"%s\" ;;\n", c.name, strings.Join(names, " "))
		}
	}
	fmt.Fprintf(w, `    help) words="%s" ;;
    completion) words="bash zsh fish" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [ "${word#-}" = "$word" ]; then
    COMPREPLY+=($(compgen -f -- "$word"))
  fi
}
complete -F _rlx rlx
`, strings.Join(commandNames(), " "))
}

func writeZsh(w io.Writer) {
	fmt.Fprintln(w, "autoload -U +X bashcompinit && bashcompinit")
	writeBash(w)
}

func writeFish(w io.Writer) {
	for _, c := range commands() {
		fmt.Fprintf(w, "complete -c rlx -n __fish_use_subcommand -a %s -d '%s'\n", c.name, strings.ReplaceAll(c.short, "'", `\'`))
		for _, name := range c.flagNames() {
			values := ""
			if words := c.values(name); words != nil {
				values = fmt.Sprintf(" -x -a '%s'", strings.Join(words, " "))
			}
			fmt.Fprintf(w, "complete -c rlx -n '__fish_seen_subcommand_from %s' -o %s%s\n", c.name, strings.TrimPrefix(name, "-"), values)
		}
	}
	fmt.Fprintln(w, "complete -c rlx -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'")
}
