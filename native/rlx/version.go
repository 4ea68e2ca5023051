package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

var versionCommand = command{
	name: "version", short: "print the version of this program",
	long: `Prints the version of the module, the commit of a build from a work tree, the version of Go, and the
platform.`,
	define: func(f *flag.FlagSet) runner {
		asJSON := jsonFlag(f)
		return func(_ context.Context, std stdio, args []string) error {
			if len(args) > 0 {
				return usagef("unknown argument %q", args[0])
			}
			v := versionOf(debug.ReadBuildInfo())
			if *asJSON {
				return writeJSON(std.out, v)
			}
			fmt.Fprintln(std.out, v)
			return nil
		}
	},
}

// versionJSON is the output of "version".
type versionJSON struct {
	Version  string `json:"version"`          // of the module, "(devel)" for a work tree
	Commit   string `json:"commit,omitempty"` // "" for a module of a proxy, whose version names it
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionOf returns the version in the information of a build; ok is false if it has none.
func versionOf(info *debug.BuildInfo, ok bool) versionJSON {
	v := versionJSON{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String returns "rlx v1.2.3, go1.26.0 linux/amd64", with the commit if it is known.
func (v versionJSON) String() string {
	text := "rlx " + v.Version
	if v.Commit != "" {
		text += ", commit " + v.Commit
		if v.Modified {
			text += " with changes"
		}
	}
	return text + ", " + v.Go + " " + v.Platform
}
