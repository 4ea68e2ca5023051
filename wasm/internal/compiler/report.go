package compiler

import (
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/internal/workload"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// target is a device as package report sees it.
type target struct{ recipe.Device }

// Support implements [report.Device].
func (t target) Support(n *ir.Node) report.Support {
	return report.OnTarget(n, t.Target, t.Target.Name)
}

// Check implements [report.Device].
func (t target) Check(m *ir.Module) error {
	_, err := recipe.Compile(m, []recipe.Device{t.Device})
	return err
}

// accepting is a target whose compiler is known to accept the module.
type accepting struct{ target }

// Check implements [report.Device].
func (accepting) Check(*ir.Module) error { return nil }

// reportOn (job, whether its first target's compiler is known to accept it) → the rows of [report.Of]: entry, node, op,
// level and reason; and the work of each entry: operations, bytes, kernels, transfer. Sizes that the job does not give are
// those of [report.WithSizes].
func reportOn(c *wire.Service, r *wire.Request, w *wire.Response) error {
	j, err := readJob(c, r, withSizes)
	if err != nil {
		return err
	}
	var d report.Device = target{j.devices[0]}
	if r.Bool() {
		d = accepting{target{j.devices[0]}}
	}
	if r.Err() != nil {
		return r.Err()
	}
	rows, err := report.Of(j.module, d)
	if err != nil {
		return err
	}
	w.U32(len(rows))
	for _, row := range rows {
		w.Text(row.Entry)
		w.Text(row.Node.String())
		w.Text(string(row.Node.Op()))
		w.U32(int(row.Level))
		w.Text(row.Reason)
	}
	w.U32(len(j.module.Entries))
	for _, e := range j.module.Entries {
		work := workload.Of(e.Graph)
		for _, x := range []float64{work.Operations, work.Bytes, work.Kernels, work.Transfer} {
			w.F64(x)
		}
	}
	return nil
}

func withSizes(name string, entries []ir.Entry, given map[string]int) (*ir.Module, error) {
	return report.WithSizes(&ir.Module{Name: name, Entries: entries}, given)
}
