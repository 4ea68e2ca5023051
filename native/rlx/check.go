package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/compiler/plan"
)

var checkCommand = command{
	name: "check", args: "FILE", short: "say which devices can compute a model, and which nodes others cannot",
	long: `Reports for each usable device how it computes the nodes of the model: natively, by their
decomposition, or not at all, and why. Sizes that the model leaves open count as 16 unless -size
gives them. A plan file is checked by the rules of its format.`,
	define: func(f *flag.FlagSet) runner {
		asJSON, s := jsonFlag(f), sizesFlag(f)
		devices := f.String("device", "", "`NAMES` of the devices to check, with commas between them; all usable ones by default")
		all := f.Bool("all", false, "write a line for each node")
		return func(ctx context.Context, std stdio, args []string) error {
			file, err := one(args, "FILE")
			if err != nil {
				return err
			}
			m, err := load(file, std.in, s)
			if err != nil {
				return err
			}
			if m.plan != nil {
				return writePlanCheck(std.out, m.plan, *asJSON)
			}
			if len(s) > 0 {
				if m.module, err = s.bind(m); err != nil {
					return err
				}
			}
			var reports []*rlx.DeviceReport
			if *devices == "" {
				reports, err = rlx.DevicesFor(m.module)
			}
			for name := range strings.SplitSeq(*devices, ",") {
				if name == "" || err != nil {
					continue
				}
				var r *rlx.DeviceReport
				r, err = rlx.ReportOn(m.module, strings.TrimSpace(name))
				reports = append(reports, r)
			}
			if err != nil {
				return err
			}
			return writeReports(std.out, reports, *asJSON, *all)
		}
	},
}

func writeReports(w io.Writer, reports []*rlx.DeviceReport, asJSON, all bool) error {
	if asJSON {
		if err := writeJSON(w, reports); err != nil {
			return err
		}
	} else {
		for _, r := range reports {
			fmt.Fprint(w, r)
			for _, row := range r.Rows {
				if all && row.Reason == "" {
					fmt.Fprintf(w, "  %s: %s: %s\n", row.Entry, row.Node, row.Level)
				}
			}
		}
	}
	if slices.ContainsFunc(reports, func(r *rlx.DeviceReport) bool { return r.Err() == nil }) {
		return nil
	}
	return errCannot
}

// planCheck describes a plan file that is valid.
type planCheck struct {
	Name     string          `json:"name"`
	Target   string          `json:"target"`
	Compiler string          `json:"compiler"`
	Requires []planCondition `json:"requires"`
}

// planCondition is a device requirement of a plan or a variant.
type planCondition struct {
	Target         string   `json:"target"`
	Features       []string `json:"features"`
	StorageBuffers int      `json:"storageBuffers"`
	BufferBytes    int      `json:"bufferBytes"`
	SharedBytes    int      `json:"sharedBytes"`
	Invocations    int      `json:"invocations"`
}

func writePlanCheck(w io.Writer, p *plan.Plan, asJSON bool) error {
	c := planCheck{Name: p.Name, Target: p.Target, Compiler: p.Compiler}
	for _, v := range p.All() {
		l := v.Requires.Limits
		c.Requires = append(c.Requires, planCondition{v.Target, v.Requires.Features, l.StorageBuffers, l.BufferBytes, l.SharedBytes, l.Invocations})
	}
	if asJSON {
		return writeJSON(w, c)
	}
	fmt.Fprintf(w, "the plan %q, made by %s, is valid\n", c.Name, c.Compiler)
	for _, r := range c.Requires {
		features := "no features"
		if len(r.Features) > 0 {
			features = "the features " + strings.Join(r.Features, ", ")
		}
		fmt.Fprintf(w, "  %s: needs %s, %d storage buffers, buffers of %s, %s of workgroup memory, %d threads in a workgroup\n",
			r.Target, features, r.StorageBuffers, bytesText(int64(r.BufferBytes)), bytesText(int64(r.SharedBytes)), r.Invocations)
	}
	return nil
}
