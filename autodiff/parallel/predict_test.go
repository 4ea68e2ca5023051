package parallel_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestCollectivesTakeWhatTheModelSays, by hand.
func TestCollectivesTakeWhatTheModelSays(t *testing.T) {
	w := parallel.Network{Host: 4, Inside: parallel.Link{Bandwidth: 100, Latency: 1}, Between: parallel.Link{Bandwidth: 10, Latency: 3}}
	for _, c := range []struct {
		op    ir.Op
		bytes int64
		n     int
		want  float64
	}{
		{ops.OpAllReduce, 400, 1, 0},
		{ops.OpAllReduce, 400, 2, 2*1 + 400.0/100},
		{ops.OpAllReduce, 400, 4, 2*3 + 600.0/100},
		{ops.OpAllGather, 100, 4, 3 + 300.0/100},
		{ops.OpReduceScatter, 400, 16, 3 + 2*3 + 375.0/40}, // 4 hosts, a tree of depth 2, 4 links of 10
	} {
		if got := w.Seconds(c.op, c.bytes, c.n); !(math.Abs(got-c.want) <= 1e-9) {
			t.Errorf("%s of %d bytes on %d devices takes %v, not %v", c.op, c.bytes, c.n, got, c.want)
		}
	}
}

// TestStepsOfManyDevicesArePredicted prints the tables of native/collective/README.md and docs/, and compares the prediction
// for two H200s with what they took.
func TestStepsOfManyDevicesArePredicted(t *testing.T) {
	loss, err := irtest.PeerGPT2.Loss()
	if err != nil {
		t.Fatal(err)
	}
	var report parallel.Report
	_, err = optim.Step(loss, "loss", optim.AdamW{}, optim.Options{Schedule: optim.Constant(1), Gradients: func(g *ir.Graph) (*ir.Graph, error) {
		g, report, err = parallel.Data{Mesh: ops.MeshAttrs{MeshAxis: "data", Devices: 2}}.Gradients(g)
		return g, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	one := parallel.Compute{Forward: 10.6e-3, Backward: 21.2e-3, Update: 1.1e-3} // 32.9 ms as measured; the parts by FLOPs and bytes
	const tokens = 16 * 1024
	ethernet := parallel.Network{Host: 1, Between: parallel.Link{Bandwidth: 25e9 / 8, Latency: 50e-6}}
	for _, c := range []struct {
		network parallel.Network
		devices []int
	}{{parallel.H200s(), []int{2, 4, 8, 16, 64, 1024}}, {ethernet, []int{2, 16, 64}}} {
		last := 0.0
		for _, n := range c.devices {
			seconds, waits := report.Step(c.network, one, n)
			t.Logf("%d devices, %d of a host: %.1f ms, of which %.1f wait, %.3g tokens/s", n, c.network.Host, 1e3*seconds, 1e3*waits, float64(n*tokens)/seconds)
			if seconds < last || waits < 0 {
				t.Errorf("%d devices take %v s, fewer %v", n, seconds, last)
			}
			last = seconds
			const measured = 35.1e-3 // of two
			if n == 2 && c.network.Host > 1 && !(math.Abs(seconds-measured) <= 0.06*measured) {
				t.Errorf("two devices take %v s; measured were %v", seconds, measured)
			}
		}
	}
}

// TestASimulatedCollectiveOverlapsWithProducts, by hand: of two collectives, one runs beside a product that does not
// need it, and the last product waits for the other. One axis is within a host, the other between hosts.
func TestASimulatedCollectiveOverlapsWithProducts(t *testing.T) {
	w := parallel.Network{Host: 2, Inside: parallel.Link{Bandwidth: 100, Latency: 1}, Between: parallel.Link{Bandwidth: 10, Latency: 3}}
	mesh := []parallel.Axis{{Name: "data", Size: 2}, {Name: "model", Size: 2}}
	g, err := ir.Build("f", func(b *ir.Builder) {
		x := b.Param("x", ir.F32, ir.Dims(5, 5)...)
		y := ops.MatMul(b, x, x) // 250 operations: 0 to 25 s
		far := ops.AllReduce(b, y, ops.MeshAttrs{MeshAxis: "data", Devices: 2}, ops.AllReduceSum)
		z := ops.MatMul(b, y, x) // 25 to 50 s
		near := ops.AllReduce(b, z, ops.MeshAttrs{MeshAxis: "model", Devices: 2}, ops.AllReduceSum)
		b.Output("far", ops.Neg(b, far))
		b.Output("last", ops.MatMul(b, near, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Simulate(g, mesh, 10)
	far, near := 2*3+100.0/10, 2*1+100.0/100 // of 100 bytes, of which a device sends all
	want := parallel.Prediction{Seconds: 50 + near + 25, Compute: 75, Network: far + near, Sent: 200}
	if err != nil || got != want {
		t.Errorf("the prediction is %+v, %v, not %+v", got, err, want)
	}
	for _, wrong := range []struct {
		mesh []parallel.Axis
		rate float64
	}{{mesh[:1], 10}, {mesh, 0}, {mesh, math.NaN()}} {
		if _, err := w.Simulate(g, wrong.mesh, wrong.rate); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("mesh %v, rate %v: %v", wrong.mesh, wrong.rate, err)
		}
	}
}
