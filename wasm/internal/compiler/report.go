package compiler

import (
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/internal/workload"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// reportOn (job, whether it was compiled for its first target) → the rows of [report.Of]: entry, node, op, level
// and reason; and the [workload.Work] of each entry.
func reportOn(c *wire.Service, r *wire.Request, w *wire.Response) error {
	j, err := readJob(c, r)
	if err != nil {
		return err
	}
	t := j.devices[0].Target
	d := report.Device{Support: func(n *ir.Node) report.Support { return report.OnTarget(n, t, t.Name) }}
	if !r.Bool() {
		d.Check = func(m *ir.Module) error {
			_, err := recipe.Compile(m, j.devices[:1])
			return err
		}
	}
	rows, _ := report.Of(j.module, d) // the host has the error of its compilation
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
		w.F64(work.Operations)
		w.F64(work.Bytes)
		w.F64(work.Kernels)
		w.F64(work.Transfer)
	}
	return nil
}
