package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/models"
)

var embedCommand = command{
	name: "embed", args: "MODEL [TEXT...]", short: "write vectors of texts by an encoder",
	long: `Writes the vector of each text as a line of JSON, by an encoder such as BERT or ModernBERT in a folder of
Hugging Face with config.json, model.safetensors and tokenizer.json, or in a GGUF file of BERT. Without a TEXT the lines of the
standard input are the texts. Vectors have length 1: the product of two is the cosine of the texts.`,
	define: func(f *flag.FlagSet) runner {
		var device string
		deviceFlag(f, &device)
		var o models.TextsOptions
		f.IntVar(&o.MaxTokens, "tokens", 0, "`TOKENS` of a text that are read at most; 0 for as many as the model has positions")
		f.IntVar(&o.Batch, "batch", 32, "`NUMBER` of texts in a run at most")
		return func(ctx context.Context, std stdio, args []string) error {
			if len(args) == 0 {
				return usagef("MODEL is missing")
			}
			texts := args[1:]
			if len(texts) == 0 {
				for lines := bufio.NewScanner(std.in); lines.Scan(); {
					texts = append(texts, lines.Text())
				}
			}
			return withModel(ctx, args[0], device, func(s *rlx.Session, m *models.Model) error {
				encoder, err := models.NewTexts(ctx, s, m, o)
				if err != nil {
					return err
				}
				defer encoder.Close(context.WithoutCancel(ctx))
				to := json.NewEncoder(std.out)
				for part := range slices.Chunk(texts, max(o.Batch, 1)) {
					vectors, err := encoder.Embed(ctx, part...)
					if err != nil {
						return err
					}
					for _, v := range vectors {
						if err := to.Encode(v); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
	},
}

var transcribeCommand = command{
	name: "transcribe", args: "MODEL FILE", short: "write down the speech of a WAV file",
	long: `Writes the text that is spoken in a WAV file, by a model such as Whisper in a folder of Hugging Face with
config.json, generation_config.json, model.safetensors and tokenizer.json. The file has the sampling rate
of the model, 16,000 Hz for Whisper.`,
	define: func(f *flag.FlagSet) runner {
		var device string
		deviceFlag(f, &device)
		var o models.TranscribeOptions
		f.StringVar(&o.Language, "language", "", "`LANGUAGE` of the speech, as en; found by the model by default")
		f.BoolVar(&o.Translate, "translate", false, "write English, whatever the language")
		return func(ctx context.Context, std stdio, args []string) error {
			if len(args) != 2 {
				return usagef("%d arguments are given: they must be MODEL and FILE", len(args))
			}
			file, err := os.Open(args[1])
			if err != nil {
				return err
			}
			sound, rate, err := models.ReadWAV(bufio.NewReader(file))
			if err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			_ = file.Close()
			return withModel(ctx, args[0], device, func(s *rlx.Session, m *models.Model) error {
				x, err := models.NewTranscriber(ctx, s, m)
				if err != nil {
					return err
				}
				defer x.Close(context.WithoutCancel(ctx))
				if rate != x.Rate() {
					return fmt.Errorf("%s has %d samples a second: it must have %d", args[1], rate, x.Rate())
				}
				transcript, err := x.Transcribe(ctx, sound, o)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(std.out, transcript.Text)
				return err
			})
		}
	},
}

// withModel calls f with an open device and an open model, and closes both.
func withModel(ctx context.Context, path, device string, f func(s *rlx.Session, m *models.Model) error) error {
	m, err := models.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := rlx.Open(device)
	if err != nil {
		return err
	}
	defer s.Close(context.WithoutCancel(ctx))
	return f(s, m)
}
