package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

var devicesCommand = command{
	name: "devices", short: "list the devices of this machine, and why others are missing",
	long: `Lists the devices: names, memory, and the reason why a device is not usable. -measure adds what
each reaches in a product of matrices of f32 and in a sum of vectors.`,
	define: func(f *flag.FlagSet) runner {
		asJSON := jsonFlag(f)
		measured := f.Bool("measure", false, "measure the rates of usable devices, a second or so each")
		return func(ctx context.Context, std stdio, args []string) error {
			if len(args) > 0 {
				return usagef("unknown argument %q", args[0])
			}
			rows, err := deviceRows(ctx, *measured)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(std.out, rows)
			}
			return writeDevices(std.out, rows, *measured)
		}
	},
}

func jsonFlag(f *flag.FlagSet) *bool { return f.Bool("json", false, "write JSON") }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// deviceRow describes a device.
type deviceRow struct {
	Name        string  `json:"name"`
	Usable      bool    `json:"usable"`
	Description string  `json:"description,omitempty"`
	Software    bool    `json:"software,omitempty"`
	Memory      int64   `json:"memory,omitempty"` // bytes, 0 if unknown
	Reason      string  `json:"reason,omitempty"` // why it is not usable
	GFLOPs      float64 `json:"gflops,omitempty"`
	GBs         float64 `json:"gbs,omitempty"`
}

func deviceRows(ctx context.Context, measured bool) ([]deviceRow, error) {
	var rows []deviceRow
	for _, d := range rlx.Devices() {
		row := deviceRow{Name: d.Name, Usable: d.Err == nil, Description: d.Description, Software: d.Software, Memory: d.Memory}
		if d.Err != nil {
			row.Reason = reasonOf(d.Err)
		} else if measured {
			var err error
			if row.GFLOPs, row.GBs, err = measure(ctx, d.Name); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// reasonOf returns the reason in an error of a backend, without its name and kind.
func reasonOf(err error) string {
	var e *native.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

func writeDevices(w io.Writer, rows []deviceRow, measured bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rates := ""
	if measured {
		rates = "GFLOP/S\tGB/S\t"
	}
	fmt.Fprintf(t, "NAME\tUSABLE\tMEMORY\t%sDEVICE\n", rates)
	for _, r := range rows {
		usable, about := "yes", r.Description
		if !r.Usable {
			usable, about = "no", r.Reason
		}
		rates := ""
		if measured {
			rates = "\t\t"
			if r.Usable {
				rates = fmt.Sprintf("%.4g\t%.3g\t", r.GFLOPs, r.GBs)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\n", r.Name, usable, memoryText(r.Memory), rates, about)
	}
	return t.Flush()
}

// memoryText returns "15.6 GiB", "-" for 0.
func memoryText(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return bytesText(bytes)
}

// bytesText returns "512 B", "1.5 KiB", "15.6 GiB".
func bytesText(bytes int64) string {
	x, unit := float64(bytes), 0
	for x >= 1024 && unit < 4 {
		x, unit = x/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %ciB", x, " KMGT"[unit])
}

// measure returns the GFLOP/s of a product of matrices and the GB/s of a sum of vectors, both of f32.
// It begins with a small product and vector, and goes on to sizes that take some milliseconds.
func measure(ctx context.Context, device string) (gflops, gbs float64, err error) {
	s, err := rlx.Open(device)
	if err != nil {
		return 0, 0, err
	}
	defer s.Close(context.WithoutCancel(ctx))
	for n := 256; n <= 4096 && err == nil; n *= 2 {
		var took time.Duration
		took, err = timeOf(ctx, s, func(b *ir.Builder) ir.Value {
			x := b.State("x", ir.F32, ir.Dims(n, n)...)
			return ops.MatMul(b, x, x)
		})
		if gflops = 2 * float64(n) * float64(n) * float64(n) / float64(took); took > 20*time.Millisecond {
			break
		}
	}
	for n := 1 << 20; n <= 1<<26 && err == nil; n *= 4 {
		var took time.Duration
		took, err = timeOf(ctx, s, func(b *ir.Builder) ir.Value {
			x := b.State("x", ir.F32, ir.N(n))
			return ops.Add(b, x, ops.Const(b, ir.F32, 1))
		})
		if gbs = 8 * float64(n) / float64(took); took > 20*time.Millisecond {
			break
		}
	}
	return gflops, gbs, err
}

// timeOf returns the time of a run that updates state "x".
func timeOf(ctx context.Context, s *rlx.Session, f func(b *ir.Builder) ir.Value) (time.Duration, error) {
	g, err := ir.Build("measure", func(b *ir.Builder) { b.SetState("x", f(b)) })
	if err != nil {
		return 0, err
	}
	m, err := ir.NewModule("measure", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		return 0, err
	}
	p, err := s.Compile(ctx, m)
	if err != nil {
		return 0, err
	}
	defer p.Close(context.WithoutCancel(ctx))
	t, err := timeRuns(ctx, p, "run", nil, 200*time.Millisecond)
	return t.median, err
}
