package parallel_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// A training step of a device that has 8 of 32 rows. An all-reduce of a bytes sends 2·¾·a by each of
// four devices.
func ExampleData() {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(8, 100)...), b.Param("w", ir.F32, ir.Dims(100, 10)...)
		b.Output("loss", ops.CrossEntropyMean(b, ops.MatMul(b, x, w), b.Input("labels", ir.I32, ir.N(8))))
	})
	if err != nil {
		log.Fatal(err)
	}
	data := parallel.Data{Mesh: ops.MeshAttrs{MeshAxis: "data", Devices: 4}}
	var report parallel.Report
	step, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{
		Gradients: func(g *ir.Graph) (out *ir.Graph, err error) {
			out, report, err = data.Gradients(g)
			return out, err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	bytes, err := parallel.Traffic(step)
	fmt.Println(report.Buckets[0].Params, report.Buckets[0].Bytes, bytes, err)
	// Output: [w] 4000 6006 <nil>
}
