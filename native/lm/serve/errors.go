package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/lm/generate"
)

// apiError is an error as the API writes it.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

const invalid = "invalid_request_error"

// refuse returns the error for a parameter of a request.
func refuse(param, text string, args ...any) *apiError {
	e := &apiError{status: http.StatusBadRequest, Message: fmt.Sprintf(text, args...), Type: invalid}
	if param != "" {
		e.Param = &param
	}
	return e
}

// coded returns an error with a code.
func coded(status int, kind, code, text string, args ...any) *apiError {
	return &apiError{status: status, Message: fmt.Sprintf(text, args...), Type: kind, Code: &code}
}

// parameters are the names of the options of sampling in requests.
var parameters = map[string]string{
	"Temperature": "temperature", "TopK": "top_k", "TopP": "top_p", "MinP": "min_p",
	"Repetition": "repetition_penalty", "Presence": "presence_penalty", "Frequency": "frequency_penalty",
}

// errorOf returns any error as the API writes it.
func errorOf(err error) *apiError {
	var own *apiError
	var long *generate.ContextError
	var option *lm.SamplingError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &long):
		return coded(http.StatusBadRequest, invalid, "context_length_exceeded", "%s", err)
	case errors.As(err, &option):
		name := parameters[option.Option]
		return refuse(name, "%s is %v: it must be %s", name, option.Value, option.Want)
	case errors.Is(err, generate.ErrRequest):
		return refuse("", "%s", requestText(err))
	case errors.As(err, &large):
		return coded(http.StatusRequestEntityTooLarge, invalid, "request_too_large", "the request has more than %d bytes", large.Limit)
	case errors.Is(err, generate.ErrClosed), errors.Is(err, context.Canceled):
		return coded(http.StatusServiceUnavailable, "server_error", "shutting_down", "the server ends")
	case errors.Is(err, native.ErrLost):
		return coded(http.StatusServiceUnavailable, "server_error", "device_lost", "%s", err)
	}
	return coded(http.StatusInternalServerError, "server_error", "internal_error", "%s", err)
}

// requestText returns the text of an error of kind [generate.ErrRequest] without that of its kind.
func requestText(err error) string {
	return strings.TrimPrefix(err.Error(), "generate: "+generate.ErrRequest.Error()+": ")
}

// write writes an error as the whole answer.
func (e *apiError) write(w http.ResponseWriter) { writeJSON(w, e.status, e.body()) }

func (e *apiError) body() any { return map[string]*apiError{"error": e} }

// writeJSON writes a value as the whole answer. An error means that the client has gone, and is ignored.
func writeJSON(w http.ResponseWriter, status int, x any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(x)
}
