package serve

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"net/http"

	"github.com/rlx-go/rlx/ir"
)

// Embedder returns vectors of texts: a [models.Texts] of package native/models. Its methods may be called from
// several goroutines.
type Embedder interface {
	// Tokens returns the tokens of a text, including those that begin and end every text.
	Tokens(text string) ([]int32, error)
	// EmbedTokens returns the vector of each text. The error is of kind [ir.ErrIndex] or [ir.ErrShape] for
	// tokens that the model cannot read.
	EmbedTokens(ctx context.Context, texts [][]int32) ([][]float32, error)
	// Width is the number of features of a vector.
	Width() int
}

// maxInputs bounds the texts of a request for vectors, as the API does.
const maxInputs = 2048

// embeddingBody is a request for vectors.
type embeddingBody struct {
	Model      string  `json:"model"`
	Input      prompts `json:"input"`
	Format     string  `json:"encoding_format"`
	Dimensions *int    `json:"dimensions"`
}

// embeddings answers a request for vectors.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	answer, err := s.embed(w, r)
	if err != nil {
		errorOf(err).write(w)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func (s *Server) embed(w http.ResponseWriter, r *http.Request) (any, error) {
	e := s.options.Embeddings
	if e == nil {
		return nil, coded(http.StatusNotFound, invalid, "unknown_url", "the server has no model for vectors")
	}
	b := &embeddingBody{}
	if err := s.read(w, r, b); err != nil {
		var form *apiError
		if errors.As(err, &form) {
			return nil, refuse("input", "input must be a string, a list of strings, of tokens, or of lists of tokens")
		}
		return nil, badBody(err)
	}
	if err := s.checkModel(b.Model); err != nil {
		return nil, err
	}
	texts, total, err := b.texts(e)
	if err != nil {
		return nil, err
	}
	n := int64(len(texts))
	if err := s.admit(w, n); err != nil {
		return nil, err
	}
	defer s.open.Add(-n)
	vectors, err := e.EmbedTokens(r.Context(), texts)
	if errors.Is(err, ir.ErrIndex) || errors.Is(err, ir.ErrShape) {
		err = refuse("input", "%s", err)
	}
	if err != nil {
		return nil, err
	}
	data := make([]any, len(vectors))
	for i, v := range vectors {
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": b.format(v)}
	}
	return map[string]any{"object": "list", "data": data, "model": s.options.Name, "usage": map[string]int{"prompt_tokens": total, "total_tokens": total}}, nil
}

// texts returns the tokens of the texts and their number.
func (b *embeddingBody) texts(e Embedder) (texts [][]int32, total int, err error) {
	switch {
	case len(b.Input) == 0 || len(b.Input) > maxInputs:
		return nil, 0, refuse("input", "input has %d texts: it must have 1 to %d", len(b.Input), maxInputs)
	case b.Format != "" && b.Format != "float" && b.Format != "base64":
		return nil, 0, refuse("encoding_format", "encoding_format is %q: it must be float or base64", b.Format)
	case b.Dimensions != nil && *b.Dimensions != e.Width():
		return nil, 0, refuse("dimensions", "dimensions is %d: it must be %d, or be left out", *b.Dimensions, e.Width())
	}
	for _, in := range b.Input {
		tokens := in.Tokens
		if tokens == nil {
			if tokens, err = e.Tokens(in.Prompt); err != nil {
				return nil, 0, refuse("input", "%s", err)
			}
		}
		texts, total = append(texts, tokens), total+len(tokens)
	}
	return texts, total, nil
}

// format returns a vector as numbers, or as the base64 of f32, little endian.
func (b *embeddingBody) format(v []float32) any {
	if b.Format != "base64" {
		return v
	}
	data := make([]byte, 0, 4*len(v))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(data)
}
