// Command digits trains a network on handwritten digits and prints how well it
// does on digits it has not seen:
//
//	go run ./demo/digits                      an MLP, on the fastest device
//	go run ./demo/digits -model cnn -save cnn.safetensors
//	go run ./demo/digits -load cnn.safetensors -model cnn -steps 0
//
// Ctrl-C stops the training; the current model is then tested and saved.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/cli"
	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
	_ "github.com/rlx-go/rlx/webgpu" // the GPU, if there is one
)

// options are the flags of the command line.
type options struct {
	model, device string
	steps         int
	seed          uint32
	rate          float64
	save, load    string
}

// defaultSteps are enough for 94 % with the MLP and 97 % with the CNN.
var defaultSteps = map[string]int{"mlp": 1500, "cnn": 600}

func main() {
	var o options
	flag.StringVar(&o.model, "model", "mlp", "network: mlp or cnn")
	flag.StringVar(&o.device, "device", "auto", "device: auto, cpu or webgpu")
	flag.IntVar(&o.steps, "steps", -1, "training steps of 128 digits; -1 for 1500 of the MLP, 600 of the CNN")
	seed := flag.Uint("seed", 1, "seed of the first weights, below 2³²")
	flag.Float64Var(&o.rate, "rate", rlx.DefaultRate, "learning rate of Adam")
	flag.StringVar(&o.save, "save", "", "write what was learned to this safetensors file")
	flag.StringVar(&o.load, "load", "", "go on from this safetensors file, written by -save or by the page")
	flag.Parse()
	if o.seed = uint32(*seed); uint(o.seed) != *seed {
		fmt.Fprintf(os.Stderr, "digits: seed %d does not fit 32 bits\n", *seed)
		os.Exit(2)
	}
	if o.steps < 0 {
		o.steps = defaultSteps[o.model]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	train, test, err := data.Digits()
	if err != nil {
		return err
	}
	session, err := cli.Open(out, o.device)
	if err != nil {
		return err
	}
	l := &learner{out: out, train: train, test: test, steps: o.steps}
	if err := l.compile(ctx, session, o); err != nil {
		return err
	}
	defer l.program.Close(ctx)
	if o.load != "" {
		if err := l.trainer.LoadFile(ctx, o.load); err != nil {
			return err
		}
		l.begun = l.trainer.Steps()
		fmt.Fprintf(out, "loaded %s, after %d steps\n", o.load, l.begun)
	}
	if o.save != "" { // fails now rather than after the training
		if _, err := os.Stat(filepath.Dir(o.save)); err != nil {
			return err
		}
	}
	began := time.Now()
	err = l.learn(ctx)
	stopped := errors.Is(err, context.Canceled)
	if err != nil && !stopped {
		return err
	}
	// The rest runs even if Ctrl-C has ended ctx.
	ctx = context.WithoutCancel(ctx)
	l.finish(stopped, time.Since(began))
	if o.save != "" {
		if err := l.trainer.SaveFile(ctx, o.save); err != nil {
			return err
		}
		fmt.Fprintf(out, "saved %s\n", o.save)
	}
	return l.report(ctx)
}

// learner is a network in training.
type learner struct {
	out         io.Writer
	train, test data.Set
	steps       int
	program     *rlx.Program
	trainer     *rlx.Trainer
	begun       int     // steps of the loaded weights
	accuracy    float64 // accuracy on the test digits, in percent
	bar         *cli.Bar
}

func (l *learner) compile(ctx context.Context, s *rlx.Session, o options) error {
	model, ok := models.All()[o.model]
	if !ok {
		return ir.Errorf(ir.ErrName, "unknown model %q: have mlp and cnn", o.model)
	}
	module, err := model.Module(models.Batch, l.test.Len())
	if err != nil {
		return err
	}
	if l.program, err = s.Compile(ctx, module); err != nil {
		return err
	}
	if _, err := l.program.Call(context.WithoutCancel(ctx), "init", rlx.Inputs{models.Seed: rlx.Uint32(o.seed)}); err != nil {
		return err
	}
	if l.trainer, err = rlx.NewTrainer(ctx, l.program, models.Loss); err != nil {
		return err
	}
	l.trainer.StopOnNaN(true)
	return l.trainer.SetRate(o.rate)
}

// learn runs the training steps, with a progress bar.
func (l *learner) learn(ctx context.Context) error {
	images, err := l.trainer.Input(models.Images).Float32s()
	if err != nil {
		return err
	}
	labels, err := l.trainer.Input(models.Labels).Int32s()
	if err != nil {
		return err
	}
	l.bar = cli.NewBar(l.out)
	batch := func(k int) error {
		l.train.Batch(k, images, labels)
		return nil
	}
	var measured time.Time
	return l.trainer.Run(ctx, l.steps, batch, func(p rlx.Progress) {
		if time.Since(measured) > time.Second/2 || p.Step == p.Steps {
			measured = time.Now()
			if _, accuracy, err := l.measure(ctx); err == nil {
				l.accuracy = accuracy
			}
		}
		l.bar.Show(p, fmt.Sprintf("test accuracy %.1f %%  %.0f steps/s", l.accuracy, p.Rate))
	})
}

func (l *learner) finish(stopped bool, took time.Duration) {
	l.bar.Leave()
	word := "done"
	if stopped {
		word = "stopped"
	}
	steps := l.trainer.Steps() - l.begun
	fmt.Fprintf(l.out, "%s after %d steps in %.1f s\n", word, steps, took.Seconds())
}

// measure returns the predicted classes of the test digits, and the accuracy in percent.
func (l *learner) measure(ctx context.Context) ([]int32, float64, error) {
	n := l.test.Len()
	images, labels := make([]float32, n*models.Pixels), make([]int32, n)
	l.test.Batch(0, images, labels)
	out, err := l.program.Call(ctx, "eval", rlx.Inputs{
		models.Images: rlx.Float32s(images, n, models.Pixels), models.Labels: rlx.Int32s(labels),
	})
	if err != nil {
		return nil, 0, err
	}
	predicted, err := out[models.Predicted].Int32s()
	if err != nil {
		return nil, 0, err
	}
	right, err := out[models.Correct].Int32s()
	if err != nil {
		return nil, 0, err
	}
	return predicted, 100 * float64(right[0]) / float64(n), nil
}

// report prints the confusion matrix and the accuracy.
func (l *learner) report(ctx context.Context) error {
	predicted, accuracy, err := l.measure(ctx)
	if err != nil {
		return err
	}
	var confusion [models.Classes][models.Classes]int
	for i, p := range predicted {
		confusion[l.test.Labels[i]][p]++
	}
	fmt.Fprint(l.out, "\n      predicted\ndigit")
	for d := range models.Classes {
		fmt.Fprintf(l.out, "%4d", d)
	}
	fmt.Fprintln(l.out)
	for d, row := range confusion {
		fmt.Fprintf(l.out, "%5d", d)
		for _, n := range row {
			if n == 0 {
				fmt.Fprint(l.out, "   .")
			} else {
				fmt.Fprintf(l.out, "%4d", n)
			}
		}
		fmt.Fprintln(l.out)
	}
	fmt.Fprintf(l.out, "\ntest accuracy %.2f %%\n", accuracy)
	return nil
}
