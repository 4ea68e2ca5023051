package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native"
)

var devicesCommand = command{
	name: "devices", short: "list the devices of this machine, and why others are missing",
	long: `Lists the devices: names, memory, and the reason why a device is not usable. -calibrate measures what
each reaches: in a product of matrices of f32, in memory, between host and device, and the least time
of a kernel and of a run. The rates are kept, and shown from then on. Once all usable devices have
them, a model without -device runs where it takes the least time by its work.`,
	define: func(f *flag.FlagSet) runner {
		asJSON := jsonFlag(f)
		calibrated := f.Bool("calibrate", false, "measure the rates of usable devices, a second or two each, and keep them")
		return func(ctx context.Context, std stdio, args []string) error {
			if len(args) > 0 {
				return usagef("unknown argument %q", args[0])
			}
			rows, err := deviceRows(ctx, *calibrated)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(std.out, rows)
			}
			return writeDevices(std.out, rows)
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
	Name        string `json:"name"`
	Usable      bool   `json:"usable"`
	Description string `json:"description,omitempty"`
	Software    bool   `json:"software,omitempty"`
	Memory      int64  `json:"memory,omitempty"` // bytes, 0 if unknown
	Reason      string `json:"reason,omitempty"` // why it is not usable
	Rates       *rates `json:"rates,omitempty"`  // nil if the device was never calibrated
}

// rates are those of a device.
type rates struct {
	GFLOPs   float64 `json:"gflops"`
	GBs      float64 `json:"gbs"`         // of memory
	Transfer float64 `json:"transferGBs"` // between host and device
	Kernel   float64 `json:"kernelUs"`
	Call     float64 `json:"callUs"`
}

func deviceRows(ctx context.Context, calibrate bool) ([]deviceRow, error) {
	var rows []deviceRow
	for _, d := range rlx.Devices() {
		row := deviceRow{Name: d.Name, Usable: d.Err == nil, Description: d.Description, Software: d.Software, Memory: d.Memory}
		if d.Err != nil {
			row.Reason = reasonOf(d.Err)
			rows = append(rows, row)
			continue
		}
		r, known := rlx.RatesOf(d)
		if calibrate {
			var err error
			if r, err = rlx.Calibrate(ctx, d.Name); err != nil {
				return nil, err
			}
			known = true
		}
		if known {
			row.Rates = &rates{r.Operations / 1e9, r.Bytes / 1e9, r.Transfer / 1e9, micros(r.Kernel), micros(r.Call)}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// reasonOf returns the reason in an error of a backend, without its name and kind.
func reasonOf(err error) string {
	var e *native.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// writeDevices writes a table, with rates if a device has them.
func writeDevices(w io.Writer, rows []deviceRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	calibrated, head := slices.ContainsFunc(rows, func(r deviceRow) bool { return r.Rates != nil }), ""
	if calibrated {
		head = "GFLOP/S\tGB/S\tCOPY GB/S\tKERNEL µS\tRUN µS\t"
	}
	fmt.Fprintf(t, "NAME\tUSABLE\tMEMORY\t%sDEVICE\n", head)
	for _, r := range rows {
		usable, about, cells := "yes", r.Description, ""
		if !r.Usable {
			usable, about = "no", r.Reason
		}
		if calibrated {
			cells = "\t\t\t\t\t"
		}
		if x := r.Rates; x != nil {
			cells = fmt.Sprintf("%.4g\t%.3g\t%.3g\t%.3g\t%.4g\t", x.GFLOPs, x.GBs, x.Transfer, x.Kernel, x.Call)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\n", r.Name, usable, memoryText(r.Memory), cells, about)
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
