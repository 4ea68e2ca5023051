package guide_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

const (
	o, h, n, d = 4, 2, 5, 8
	p          = 0.1
	lr         = 0.01
	steps      = 10
)

// layerRows are the rows of the table whose x is an image, of 8 channels, or a sequence.
func layerRows(b *ir.Builder, x, ids ir.Value) {
	nn.Infer(b)
	nn.Train(b)
	nn.Linear(b, x, o)
	nn.Conv2d(b, x, o, 3, nn.ConvOptions{Same: true})
	nn.Embedding(b, ids, n, d)
	nn.LayerNorm(b, x)
	nn.BatchNorm(b, x)
	nn.Dropout(b, x, p)
	nn.Attention(b, x, h)
	nn.TransformerBlock(b, x, h)
	x = ops.Mean(b, x, 1)
	nn.LSTM(b, x, h)
	nn.Key(b, "noise")
}

// opRows are the rows of the table whose x is a matrix.
func opRows(b *ir.Builder, x, y, w, c, ids ir.Value) {
	ops.MSE(b, x, y, ops.LossMean)
	logits := ops.MatMul(b, x, w)
	ops.Const(b, ir.F32, 0.5, ir.Dims(2, 3)...)
	ops.ConstLike(b, x, 0.5)
	ops.Iota(b, ir.I32, 0, ir.N(4))
	ops.Split(b, x, 0, ir.N(1), ir.N(2))
	ops.SliceAxis(b, x, 0, ir.N(1), ir.N(1))
	ops.TopK(b, x, ops.TopKAttrs{K: 1, Axis: 1})
	ops.ArgMax(b, x, -1)
	ops.Categorical(b, nn.Key(b, "sample"), logits, -1)
	ops.Select(b, c, x, y)
	ops.ReduceSum(b, x, 1)
	ops.Mean(b, x, 1)
	ops.Take(b, x, ids, 0, "")
	ops.StopGradient(b, x)
	y = ids
	b.Output("loss", ops.CrossEntropyMean(b, logits, y))
}

// trainingRows are the rows of the table that are options of a training.
var trainingRows = []any{
	rlx.Training{Optimizer: optim.AdamW{}, Rate: lr},
	rlx.Training{Precision: rlx.MixedBF16},
	rlx.Training{Seed: 0},
	optim.Options{ClipNorm: 1},
	optim.Options{Schedule: optim.Cosine(lr, 0, steps)},
	optim.Options{Groups: []optim.Group{{Match: optim.Matching("*/bias"), Rate: 2}}},
	optim.Options{Frozen: []string{"encoder"}},
	optim.Options{Average: 0.999},
}

// TestTheRowsOfTheTableRun runs each call and literal in the last column of the table: the functions above have its text.
func TestTheRowsOfTheTableRun(t *testing.T) {
	must(ir.Build("layers", func(b *ir.Builder) {
		layerRows(b, b.Input("x", ir.F32, ir.Dims(2, 4, 4, 8)...), b.Input("ids", ir.I32, ir.N(3)))
	}))
	g := must(ir.Build("ops", func(b *ir.Builder) {
		matrix := func(name string, of ir.DType) ir.Value { return b.Input(name, of, ir.Dims(3, 3)...) }
		opRows(b, matrix("x", ir.F32), matrix("y", ir.F32), b.Param("w", ir.F32, ir.Dims(3, 3)...), matrix("c", ir.Bool), b.Input("ids", ir.I32, ir.N(3)))
	}))
	must(autodiff.Grad(g, "loss", "w"))
	loss := must(ir.Build("loss", func(b *ir.Builder) {
		x := nn.Linear(b, b.Input("x", ir.F32, ir.Dims(2, 3)...), 4, nn.LinearOptions{Name: "encoder"})
		b.Output("loss", ops.Mean(b, nn.Linear(b, x, 1)))
	}))
	session := must(rlx.Open("cpu"))
	for _, row := range trainingRows {
		training, is := row.(rlx.Training)
		if !is {
			training.Options = row.(optim.Options)
		}
		trainer, err := session.Train(t.Context(), loss, training)
		if err != nil {
			t.Errorf("%+v: %v", row, err)
			continue
		}
		check(trainer.Program().Close(t.Context()))
	}
	data, size, seed := points(4), 2, uint64(1)
	rlx.Shuffled(data, size, seed)
	data["y"] = rlx.Int32s([]int32{0, 1, 0, 1})
	if _, _, err := rlx.SplitRows(data, 0.2, rlx.SplitOptions{Stratify: "y"}); err != nil {
		t.Error(err)
	}
	_ = rlx.LoadOptions{Missing: []string{"head"}}
	rlx.Devices()
	if _, err := rlx.Open("cuda:1"); err == nil { // this folder does not import the device
		t.Error("there is a device that nobody imports")
	}
	folder := t.TempDir()
	check(must(rlx.NewEvents(folder)).Close())
	assertRowsAreHere(t)
}

// assertRowsAreHere asserts that this file has each call and literal of the table.
func assertRowsAreHere(t *testing.T) {
	t.Helper()
	source, guide := string(must(os.ReadFile("table_test.go"))), string(must(os.ReadFile("GUIDE.md")))
	_, table, _ := strings.Cut(guide, "| rlx |\n")
	rows := 0
	for row := range strings.Lines(table) {
		columns := strings.Split(row, " | ")
		for _, code := range regexp.MustCompile("`([^`]*[({][^`]*)`").FindAllStringSubmatch(columns[len(columns)-1], -1) {
			if rows++; !strings.Contains(source, code[1]) {
				t.Errorf("this file does not run %s", code[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d calls in the table", rows)
	}
}
