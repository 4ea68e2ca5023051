// Command gpt trains a language model of characters on the plays of Shakespeare and prints text
// that it generates:
//
//	go run ./demo/gpt                         a small one: a minute on a CPU
//	go run ./demo/gpt -size full -precision bf16 -patience 4 -save gpt.safetensors
//	go run ./demo/gpt -size full -load gpt.safetensors -steps 0 -prompt "ROMEO:"
//
// The full size is nanoGPT's character model, for a large GPU. Ctrl-C stops the training; the
// current model is then measured and saved. From a saved file, training continues as if it had not
// stopped.
//
// Start reading at main.go; learn.go trains, options.go has the flags. The graphs are those of package
// demo/models, which the page of the demo trains, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/cli"
	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
	_ "github.com/rlx-go/rlx/native/cuda" // an NVIDIA GPU, if there is one
	_ "github.com/rlx-go/rlx/webgpu"      // any GPU
)

// sizes are the models. The small one is nanoGPT's suggestion for a notebook, the
// full one its configuration for a GPU.
var sizes = map[string]models.GPT{
	"small": {Context: 64, Width: 128, Heads: 4, Blocks: 4, Batch: 12, Rate: 2e-3, Steps: 1000},
	"full":  {Context: 256, Width: 384, Heads: 6, Blocks: 6, Batch: 64, Dropout: 0.2, Rate: 1e-3, Steps: 5000},
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	text, err := read(o.text)
	if err != nil {
		return err
	}
	if o.save != "" { // fails now rather than after the training
		if _, err := os.Stat(filepath.Dir(o.save)); err != nil {
			return err
		}
	}
	l, err := newLearner(out, o, text)
	if err != nil {
		return err
	}
	if l.dir, err = os.MkdirTemp("", "gpt"); err != nil {
		return err
	}
	defer os.RemoveAll(l.dir)
	session, err := cli.Open(out, o.device)
	if err != nil {
		return err
	}
	if err := l.compile(ctx, session); err != nil {
		return err
	}
	defer l.trainer.Program().Close(ctx)
	if o.load != "" {
		if err := l.trainer.LoadFile(ctx, o.load); err != nil {
			return err
		}
		fmt.Fprintf(out, "loaded %s, after %d steps\n", o.load, l.trainer.Steps())
	}
	err = l.learn(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	// The rest runs even if Ctrl-C has ended ctx.
	ctx = context.WithoutCancel(ctx)
	if o.profile {
		if err := l.profile(ctx); err != nil {
			return err
		}
	}
	return l.finish(ctx)
}

// read returns the training text.
func read(file string) (data.Text, error) {
	text, err := data.Shakespeare()
	if file != "" {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return data.Text{}, err
	}
	return data.NewText(text), nil
}

func newLearner(out io.Writer, o options, text data.Text) (*learner, error) {
	m, ok := sizes[o.size]
	if !ok {
		return nil, ir.Errorf(ir.ErrName, "unknown size %q: have %s", o.size, strings.Join(slices.Sorted(maps.Keys(sizes)), " and "))
	}
	if o.steps >= 0 {
		m.Steps = o.steps
	}
	m.Vocab = len(text.Characters)
	l := &learner{out: out, options: o, text: text, model: m, bar: cli.NewBar(out)}
	if text.Windows(m.Context) < 1 || len(text.Train) <= m.Context {
		return nil, ir.Errorf(ir.ErrShape, "a text of %d characters is too short for a context of %d", len(text.Train)+len(text.Held), m.Context)
	}
	if l.prompt, ok = text.Encode(o.prompt); !ok || len(l.prompt) == 0 {
		return nil, ir.Errorf(ir.ErrAttr, "the prompt %q is empty, or has a character that the text does not have", o.prompt)
	}
	if _, ok := precisions[o.precision]; !ok {
		return nil, ir.Errorf(ir.ErrName, "unknown precision %q: have %s", o.precision, strings.Join(slices.Sorted(maps.Keys(precisions)), ", "))
	}
	if !(o.temperature > 0) {
		return nil, ir.Attrf("a temperature of %v is not above 0", o.temperature)
	}
	return l, nil
}

// The entries other than the training step.
const (
	evalEntry = "eval"
	drawEntry = "draw"
)

func (l *learner) compile(ctx context.Context, s *rlx.Session) error {
	loss, err := l.model.LossGraph()
	if err != nil {
		return err
	}
	how := l.model.Training(l.options.seed)
	how.Precision = precisions[l.options.precision]
	for name, graph := range map[string]func() (*ir.Graph, error){evalEntry: l.model.EvalGraph, drawEntry: l.model.DrawGraph} {
		g, err := graph()
		if err != nil {
			return err
		}
		how.Eval = append(how.Eval, ir.Entry{Name: name, Graph: g})
	}
	slices.SortFunc(how.Eval, func(a, b ir.Entry) int { return strings.Compare(a.Name, b.Name) })
	if l.trainer, err = s.Train(ctx, loss, how); err != nil {
		return err
	}
	l.tokens, l.next, err = ints(l.trainer.Input(models.Tokens), l.trainer.Input(models.Next))
	fmt.Fprintf(l.out, "%.1f million parameters, %d characters of context\n", float64(l.model.Params())/1e6, l.model.Context)
	return err
}

func ints(tokens, next rlx.Tensor) (a, b []int32, err error) {
	if a, err = tokens.Int32s(); err != nil {
		return nil, nil, err
	}
	b, err = next.Int32s()
	return a, b, err
}
