// Command rlx shows what this machine can run, and checks, shows, runs, trains and measures models in
// files:
//
//	go run github.com/rlx-go/rlx/native/rlx@latest devices
//
// A model is a file with the text form of a graph, or of several graphs, which are the entries of a
// module: what [ir.Graph.String] and [ir.Module.String] return; or an ONNX model. "rlx help" lists the commands, "rlx
// help show" describes one. The exit status is 0 for success, 1 for an error, 2 for a command line
// that is wrong, and 3 for a model that no device asked for can compute.
//
// It is a user of package rlx and of the packages below native, and nothing imports it. Start reading at
// main.go, which has the list of commands; load.go reads the files that most of them take, and each
// command has a file of its name.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/rlx-go/rlx/internal/nearest"
	_ "github.com/rlx-go/rlx/native/collective/mpi" // for mpirun
	_ "github.com/rlx-go/rlx/native/coreml"
	_ "github.com/rlx-go/rlx/native/cuda"
	_ "github.com/rlx-go/rlx/native/metal"
	_ "github.com/rlx-go/rlx/webgpu"
)

// The exit statuses.
const (
	exitError  = 1
	exitUsage  = 2
	exitCannot = 3
)

func main() {
	withoutDisplay()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// withoutDisplay keeps the Wayland library, which Vulkan drivers ask for a display when devices are opened, from writing
// an error on a server, where there is none: it looks for a socket in XDG_RUNTIME_DIR unless WAYLAND_DISPLAY has a whole path.
func withoutDisplay() {
	if os.Getenv("XDG_RUNTIME_DIR") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		_ = os.Setenv("WAYLAND_DISPLAY", os.DevNull) // no socket
	}
}

// stdio are the streams of a command.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// command is a subcommand.
type command struct {
	name, args, short, long string
	// define adds the flags of the command and returns what runs it.
	define func(f *flag.FlagSet) runner
}

// runner runs a command with the arguments that are not flags.
type runner func(ctx context.Context, std stdio, args []string) error

// commands are the subcommands, in the order of the help.
func commands() []command {
	return []command{devicesCommand, checkCommand, showCommand, runCommand, trainCommand, benchCommand, planCommand, generateCommand, perplexityCommand, serveCommand, embedCommand, transcribeCommand, convertCommand, launchCommand, completionCommand, versionCommand}
}

// usageError is an error in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(text string, args ...any) error { return usageError(fmt.Sprintf(text, args...)) }

// errCannot is the error of a check that fails; the reasons are in the output.
var errCannot = errors.New("no device can compute the model")

// checkedWriter keeps the first error of a writer: text is printed without looking at errors.
type checkedWriter struct {
	to  io.Writer
	err error
}

// Write implements [io.Writer].
func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// sameFile reports whether what is written to a and to b is read in one place, as on a terminal.
func sameFile(a, b io.Writer) bool {
	file := func(w io.Writer) os.FileInfo {
		if c, ok := w.(*checkedWriter); ok {
			w = c.to
		}
		f, ok := w.(*os.File)
		if !ok {
			return nil
		}
		info, err := f.Stat()
		if err != nil {
			return nil
		}
		return info
	}
	x, y := file(a), file(b)
	return x != nil && y != nil && os.SameFile(x, y)
}

// run runs the command line and returns the exit status.
func run(ctx context.Context, args []string, std stdio) int {
	out := &checkedWriter{to: std.out}
	std.out = out
	code := dispatch(ctx, args, std)
	if code == 0 && out.err != nil {
		fmt.Fprintf(std.err, "rlx: %v\n", out.err)
		return exitError
	}
	return code
}

// dispatch runs the command that the first argument names.
func dispatch(ctx context.Context, args []string, std stdio) int {
	if len(args) == 0 {
		writeHelp(std.err)
		return exitUsage
	}
	name, args := args[0], args[1:]
	if name == "help" || name == "-h" || name == "-help" || name == "--help" {
		return help(args, std)
	}
	if name == "-version" || name == "--version" {
		name = versionCommand.name
	}
	c := find(name)
	if c == nil {
		return unknownCommand(name, std)
	}
	err := c.run(ctx, args, std)
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		c.help(std.out)
		return 0
	case errors.Is(err, errCannot):
		return exitCannot
	case errors.As(err, &wrong):
		fmt.Fprintf(std.err, "rlx %s: %v\n\"rlx help %s\" describes the command\n", name, err, name)
		return exitUsage
	}
	interrupted := ""
	if ctx.Err() != nil {
		interrupted = "\ninterrupted: " // below a progress bar
	}
	fmt.Fprintf(std.err, "%srlx %s: %v\n", interrupted, name, err)
	return exitError
}

// unknownCommand reports an unknown command with the nearest one, and returns the exit status.
func unknownCommand(name string, std stdio) int {
	fmt.Fprintf(std.err, "rlx: unknown command %q%s: \"rlx help\" lists them\n", name, nearestTo(name, commandNames()))
	return exitUsage
}

// nearestTo returns `, nearest is "train"` for a command or a flag, "" for none with the same first letter.
func nearestTo(name string, names []string) string {
	near := nearest.Name(name, names)
	letters, own := strings.TrimLeft(near, "-"), strings.TrimLeft(name, "-")
	if letters == "" || own == "" || letters[0] != own[0] {
		return ""
	}
	return fmt.Sprintf(", nearest is %q", near)
}

// find returns the command of a name, nil for none.
func find(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return &c
		}
	}
	return nil
}

// run parses the flags, which may be before and after other arguments but not after "--", and runs
// the command.
func (c *command) run(ctx context.Context, args []string, std stdio) error {
	f := c.flags()
	run := c.define(f)
	var rest, after []string
	if end := slices.Index(args, "--"); end >= 0 {
		args, after = args[:end], args[end+1:]
	}
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return err
			}
			if _, name, unknown := strings.Cut(err.Error(), "flag provided but not defined: "); unknown {
				return usagef("unknown flag %s%s", name, nearestTo(name, c.flagNames()))
			}
			return usageError(err.Error())
		}
		if args = f.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return run(ctx, std, append(rest, after...))
}

// flags returns an empty set of flags that prints nothing.
func (c *command) flags() *flag.FlagSet {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

func help(args []string, std stdio) int {
	if len(args) == 0 {
		writeHelp(std.out)
		return 0
	}
	c := find(args[0])
	if c == nil {
		return unknownCommand(args[0], std)
	}
	c.help(std.out)
	return 0
}

func writeHelp(w io.Writer) {
	fmt.Fprint(w, "rlx runs models on the devices of this machine.\n\nusage: rlx COMMAND [FLAGS] [FILE]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-12s %s\n", c.name, c.short)
	}
	fmt.Fprint(w, "  help         describe a command: rlx help show\n\n"+fileHelp+"\n"+exitHelp)
}

const fileHelp = `FILE is the text form of a graph, or of several, the entries of a module: what Graph.String and
Module.String return; or an ONNX model, with the extension .onnx. "-" is the standard input.
`

const exitHelp = `The exit status is 0 for success, 1 for an error, 2 for a wrong command line, and 3 for a model
that no device asked for can compute.
`

// help describes a command and its flags.
func (c *command) help(w io.Writer) {
	fmt.Fprintf(w, "usage: rlx %s\n\n%s\n", strings.TrimSpace(c.name+" [FLAGS] "+c.args), c.long)
	f := c.flags()
	c.define(f)
	first := true
	f.VisitAll(func(x *flag.Flag) {
		if first {
			fmt.Fprint(w, "\nflags:\n")
			first = false
		}
		value, usage := flag.UnquoteUsage(x)
		fmt.Fprintf(w, "  -%-18s %s%s\n", strings.TrimSpace(x.Name+" "+value), usage, defaultOf(x))
	})
}

// defaultOf returns " (default 10)", "" for a zero value.
func defaultOf(x *flag.Flag) string {
	if x.DefValue == "" || x.DefValue == "0" || x.DefValue == "false" {
		return ""
	}
	return " (default " + x.DefValue + ")"
}

// one returns the only argument.
func one(args []string, what string) (string, error) {
	switch len(args) {
	case 0:
		return "", usagef("%s is missing", what)
	case 1:
		return args[0], nil
	}
	return "", usagef("%q follows %s: one must be given", args[1], what)
}
