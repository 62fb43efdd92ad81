package apierror

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm/apierror/recorded"
)

// decidedElsewhere are the rows that are no errors on the wire: the adapter
// reads a stop reason and the loop compares usage with the window.
var decidedElsewhere = map[string]bool{
	"E031": true, "E092": true, // stop reason, see TestStopReasonOverflow
	"E094": true, "E095": true, // usage
	"E126": true, "E128": true, // the answer was cut by the output limit
}

func recordedErrors(t testing.TB) []recorded.Error {
	t.Helper()
	rows, err := recorded.Errors()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// payload removes the framing of server-sent events, where there is one.
func payload(p recorded.Error) string {
	var data []string
	for line := range strings.SplitSeq(p.Body, "\n") {
		if rest, ok := strings.CutPrefix(line, "data: "); ok && rest != "[DONE]" {
			data = append(data, rest)
		}
	}
	if len(data) == 0 {
		return p.Body
	}
	return strings.Join(data, "\n")
}

// parsed is the error as an SDK hands it over: with the fields of the error
// object that it understands.
func parsed(p recorded.Error) Raw {
	r := Raw{Provider: p.Provider, Status: p.Status, Body: payload(p)}
	var envelope struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Param   string `json:"param"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(r.Body), &envelope) == nil {
		r.Message, r.Type, r.Param = envelope.Error.Message, envelope.Error.Type, envelope.Error.Param
		r.Code, _ = envelope.Error.Code.(string)
	}
	return r
}

type verdict struct {
	Kind                       Kind
	Used, Limit, Input, Output int
}

func verdictOf(e *Error) verdict {
	return verdict{e.Kind, e.Used, e.Limit, e.Input, e.Output}
}

func TestDecision13_EveryRecordedErrorIsClassified(t *testing.T) {
	for _, row := range recordedErrors(t) {
		if decidedElsewhere[row.ID] {
			continue
		}
		t.Run(row.ID, func(t *testing.T) {
			forms := map[string]Raw{
				"parsed": parsed(row),
				// An SDK that could not read the envelope keeps the body
				// alone, and one that reads streams has no status.
				"body alone":   {Provider: row.Provider, Status: row.Status, Body: payload(row)},
				"message only": {Provider: row.Provider, Status: row.Status, Message: payload(row)},
			}
			for name, raw := range forms {
				e := Classify(raw)
				got := verdict{Kind: e.Kind, Used: e.Used, Limit: e.Limit}
				want := verdict{Kind: Kind(row.Kind), Used: row.Tokens.Used, Limit: row.Tokens.Limit}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s\n(-want +got)\n%s", name, e.Message, diff)
				}
				if overflow := errors.Is(e, ErrContextWindowExceeded); overflow != (row.Kind == string(KindContextOverflow)) {
					t.Errorf("%s: errors.Is(ErrContextWindowExceeded) = %t", name, overflow)
				}
				if e.Message == "" || strings.ContainsAny(e.Message[:1], "{[<") {
					t.Errorf("%s: message %q is not the provider's own text", name, e.Message)
				}
				if e.Advice() == "" {
					t.Errorf("%s: no advice", name)
				}
			}
		})
	}
}

func TestInnermostMessageIsShown(t *testing.T) {
	want := map[string]string{
		"E005": "Your input exceeds the context window of this model. Please adjust your input and try again.",
		"E023": "The input token count (314175) exceeds the maximum number of tokens allowed (131072).",
		"E025": "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
		"E050": "This model's maximum context length is 40960 tokens. However, you requested 100 output tokens and your prompt contains at least 40861 input tokens.",
		"E073": "prompt is too long: 209303 tokens > 200000 maximum",
		"E074": "input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000, decrease input length or `max_tokens` and try again",
		"E083": "'max_tokens' or 'max_completion_tokens' is too large: 47186. This model's maximum context length is 131072 tokens and your request has 86565 input tokens (47186 > 131072 - 86565). None",
		"E089": "request (302 tokens) exceeds the available context size (256 tokens), try increasing it",
		"E123": "max_completion_tokens is too large: 262144. This model supports at most 256000 completion tokens.",
	}
	got := map[string]string{}
	for _, row := range recordedErrors(t) {
		if want[row.ID] != "" {
			got[row.ID] = Classify(parsed(row)).Message
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMostTellingCodeIsKept(t *testing.T) {
	want := map[string]string{
		"E001": "context_length_exceeded", "E005": "context_length_exceeded", "E010": "invalid_request_error",
		"E028": "invalid_request_error", "E059": "exceed_context_size_error", "E104": "ThrottlingException",
		"E130": "usage_limit_reached", "E148": "UNAVAILABLE",
	}
	got := map[string]string{}
	for _, row := range recordedErrors(t) {
		if want[row.ID] != "" {
			got[row.ID] = Classify(parsed(row)).Code
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPartsOfAnOverflowingRequestAreRead(t *testing.T) {
	want := map[string]verdict{
		"E002": {KindContextOverflow, 4118, 4096, 3118, 1000},
		"E008": {KindContextOverflow, 4106, 4096, 4106, 0},
		"E013": {KindContextOverflow, 207951, 200000, 199759, 8192},
		"E028": {KindContextOverflow, 131134, 131072, 122942, 8192},
		"E035": {KindContextOverflow, 263390, 262000, 1390, 262000},
		"E037": {KindContextOverflow, 141607, 131072, 10535, 131072},
		"E038": {KindContextOverflow, 84221, 4097, 80125, 4096},
		"E050": {KindContextOverflow, 40961, 40960, 40861, 100},
		"E052": {KindContextOverflow, 2053, 2048, 8, 2045},
		"E055": {KindContextOverflow, 202941, 202752, 170941, 32000},
		"E064": {Kind: KindContextOverflow},
		"E068": {KindContextOverflow, 8251, 8192, 6204, 2047},
		"E074": {KindContextOverflow, 212181, 200000, 179413, 32768},
		"E082": {KindContextOverflow, 8246, 8192, 54, 8192},
		"E083": {KindContextOverflow, 133751, 131072, 86565, 47186},
		"E085": {KindContextOverflow, 131073, 131072, 115073, 16000},
		"E086": {KindContextOverflow, 256878, 256000, 31216, 225662},
	}
	got := map[string]verdict{}
	for _, row := range recordedErrors(t) {
		if _, ok := want[row.ID]; ok {
			got[row.ID] = verdictOf(Classify(parsed(row)))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestOtherWordingsOfOverflow holds wordings that the recorded rows lack.
func TestOtherWordingsOfOverflow(t *testing.T) {
	tests := []struct {
		provider, body string
		status         int
		want           verdict
	}{
		{"poolside", `{"error":{"message":"Input length 140032 exceeds the maximum allowed input length of 131,072 tokens.","code":400}}`, 400, verdict{Used: 140032, Limit: 131072}},
		{"dashscope", `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]","type":"invalid_request_error"}}`, 400, verdict{Limit: 98304}},
		{"dashscope", `{"code":"InvalidParameter","message":"Total message token length exceed model limit (10000000 tokens)."}`, 400, verdict{Limit: 10000000}},
		{"minimax", `{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}`, 200, verdict{}},
		{"kimi", `{"error":{"message":"Your request exceeded model token limit: 128000","type":"invalid_request_error"}}`, 400, verdict{Limit: 128000}},
		{"github-copilot", `prompt token count of 130,212 exceeds the limit of 128,000`, 400, verdict{Used: 130212, Limit: 128000}},
		{"github-models", `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens.","details":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`, 413, verdict{Limit: 8000}},
		{"groq", `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}`, 400, verdict{}},
		{"cerebras", `{"message":"Please reduce the length of the messages or completion. Current length is 42213 while limit is 8192","type":"invalid_request_error","param":"messages"}`, 400, verdict{Used: 42213, Limit: 8192}},
		{"mistral", `{"object":"error","message":{"detail":"Prompt contains 151,204 tokens and 0 draft tokens, too large for model with 131,072 maximum context length"},"type":"invalid_request_prompt","code":"3051"}`, 400, verdict{Used: 151204, Limit: 131072}},
		{"openai", `{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":null}}`, 400, verdict{Used: 509178, Limit: 272000}},
		{"zai", `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, 400, verdict{}},
		{"zai", `{"error":{"code":"1261","message":"Prompt 超长"}}`, 400, verdict{}},
		{"vllm", `{"error":{"message":"You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is only 40960 tokens, resulting in a maximum input length of 40960 tokens. Please reduce the length of the input prompt.","type":"BadRequestError","code":400}}`, 400, verdict{Used: 40961, Limit: 40960, Input: 40961}},
		{"vllm", `{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that max_model_len is no smaller than the number of text tokens.","code":400}`, 400, verdict{Used: 9000, Limit: 4096}},
		{"llama.cpp", `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, 500, verdict{}},
		{"lmstudio", `{"error":"Reached context length of 4096 tokens with model (arch: qwen3) that does not currently support mid-generation context overflow."}`, 200, verdict{Limit: 4096}},
		{"fireworks", `{"error":{"message":"The prompt is too long: 139000, model maximum context length: 131071","type":"invalid_request_error"}}`, 400, verdict{Used: 139000, Limit: 131071}},
		{"together", `{"error":{"message":"Input length (265330) exceeds model's maximum context length (262144)."}}`, 422, verdict{Used: 265330, Limit: 262144}},
		{"amazon-bedrock", `{"__type":"com.amazon.coral.validate#ValidationException","message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`, 400, verdict{}},
		{"amazon-bedrock", `{"message":"400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9011"}`, 400, verdict{Used: 9011, Limit: 8192}},
		{"cohere", `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5120. Try using a shorter prompt, or a smaller max_tokens value."}`, 400, verdict{Used: 5120, Limit: 4081}},
		{"watsonx", `{"errors":[{"code":"invalid_input_argument","message":"Invalid input argument for Model: the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model"}],"status_code":400}`, 400, verdict{Used: 5000, Limit: 4096}},
		{"tgi", "{\"error\":\"Input validation error: `inputs` must have less than 1024 tokens. Given: 2051\",\"error_type\":\"validation\"}", 422, verdict{Limit: 1024}},
		{"nim", `{"message":"Prompt length (3000) exceeds maximum input length (2048)."}`, 400, verdict{Used: 3000, Limit: 2048}},
		{"anthropic", `PROMPT IS TOO LONG: 211,004 TOKENS > 200,000 MAXIMUM`, 400, verdict{Used: 211004, Limit: 200000}},
		{"anthropic", "input length and `max_tokens` exceed context limit: 150,000 + 64,000 > 200,000", 400, verdict{Used: 214000, Limit: 200000, Input: 150000, Output: 64000}},
		{"gateway", `Error code: 400 - {'error': {'message': "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.", 'type': 'invalid_request_error'}}`, 400, verdict{Used: 130001, Limit: 128000}},
		{"openhands", `{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 138956 tokens (7,884 in the messages, 131,072 in the completion)."}}`, 400, verdict{Used: 138956, Limit: 131072, Input: 7884, Output: 131072}},
		{"cline", `{"error":{"message":"{\"code\":400,\"message\":\"maximum context length is 65536 tokens\"}"}}`, 200, verdict{Limit: 65536}},
		{"vllm", `{"error":{"message":"Invalid value for 'max_tokens': must be at least 1, got -186"}}`, 400, verdict{}},
		{"openai", `{"detail":"Your input exceeds the context window of this model."}`, 400, verdict{}},
		{"gateway", "<html><head><title>400 prompt is too long</title></head><body>no</body></html>", 400, verdict{}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%d %s", i, tt.provider), func(t *testing.T) {
			e := Classify(Raw{Provider: tt.provider, Status: tt.status, Body: tt.body})
			tt.want.Kind = KindContextOverflow
			if diff := cmp.Diff(tt.want, verdictOf(e)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", tt.body, diff)
			}
		})
	}
}

// TestLookAlikesAreNoOverflow holds texts that speak of tokens, lengths and
// limits and mean something else.
func TestLookAlikesAreNoOverflow(t *testing.T) {
	tests := []struct {
		name string
		raw  Raw
		want verdict
	}{
		{"unrelated 400", Raw{Status: 400, Body: `{"error":{"message":"messages: roles must alternate","type":"invalid_request_error"}}`}, verdict{Kind: KindOther}},
		{"tool without call", Raw{Status: 400, Body: `{"error":{"message":"messages with role 'tool' must be a response to a preceding message with 'tool_calls'."}}`}, verdict{Kind: KindOther}},
		{"tools missing", Raw{Status: 400, Code: "ValidationException", Message: "The toolConfig field must be defined when using toolUse and toolResult content blocks."}, verdict{Kind: KindOther}},
		{"tool name", Raw{Status: 400, Body: `{"error":{"message":"Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.","param":"tools[0].function.name","code":"string_above_max_length"}}`}, verdict{Kind: KindOther}},
		{"long content", Raw{Status: 400, Body: `{"error":{"message":"Invalid 'input[3].output': string too long. Expected a string with maximum length 10485760, but got a string with length 11000000 instead.","param":"input[3].output","code":"string_above_max_length"}}`}, verdict{Kind: KindPayloadTooLarge}},
		{"wrong parameter", Raw{Status: 400, Body: `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`}, verdict{Kind: KindOther}},
		{"image bytes", Raw{Status: 400, Body: `{"error":{"message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes","type":"invalid_request_error"}}`}, verdict{Kind: KindOther}},
		{"echoed request", Raw{Status: 422, Body: `{"detail":[{"loc":["body","tools"],"msg":"field required","type":"missing","input":{"messages":[{"role":"user","content":"prompt is too long: 9 tokens > 8 maximum"}]}}]}`}, verdict{Kind: KindOther}},
		{"not found", Raw{Status: 404, Body: `404 page not found`}, verdict{Kind: KindOther}},
		{"country", Raw{Status: 403, Body: `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}`}, verdict{Kind: KindOther}},
		{"memory", Raw{Status: 500, Body: `{"error":"model requires more system memory (5.6 GiB) than is available (3.1 GiB)"}`}, verdict{Kind: KindOther}},

		{"anthropic output", Raw{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4"}}`}, verdict{Kind: KindMaxOutput, Used: 64000, Limit: 32000}},
		{"groq output", Raw{Status: 400, Body: "{\"error\":{\"message\":\"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model\",\"type\":\"invalid_request_error\",\"param\":\"max_tokens\"}}"}, verdict{Kind: KindMaxOutput, Limit: 8192}},
		{"bedrock output", Raw{Status: 400, Code: "ValidationException", Message: "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."}, verdict{Kind: KindMaxOutput, Limit: 4096}},
		{"gemini output", Raw{Status: 400, Body: `{"error":{"code":400,"message":"Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.","status":"INVALID_ARGUMENT"}}`}, verdict{Kind: KindMaxOutput, Used: 100000, Limit: 65536}},
		{"dashscope output", Raw{Status: 400, Body: `{"error":{"code":"invalid_parameter_error","message":"Range of max_tokens should be [1, 8192]"}}`}, verdict{Kind: KindMaxOutput, Limit: 8192}},
		{"vllm output", Raw{Status: 400, Body: `{"error":{"message":"max_tokens=200000 cannot be greater than max_model_len=max_total_tokens=131072. Please request fewer output tokens.","code":400}}`}, verdict{Kind: KindMaxOutput, Used: 200000, Limit: 131072}},

		{"anthropic tokens", Raw{Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later."}}`}, verdict{Kind: KindRateLimitTokens}},
		{"anthropic requests", Raw{Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50 requests per minute. Please reduce the maximum tokens requested or try again later."}}`}, verdict{Kind: KindRateLimit}},
		{"openai requests", Raw{Status: 429, Body: `{"error":{"message":"Rate limit reached for gpt-4 in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.","type":"requests","code":"rate_limit_exceeded"}}`}, verdict{Kind: KindRateLimit}},
		{"groq requests", Raw{Status: 429, Body: `{"error":{"message":"Rate limit reached on requests per minute (RPM): Limit 30, Used 30, Requested 1. Need more tokens? Upgrade to Dev Tier today","type":"requests","code":"rate_limit_exceeded"}}`}, verdict{Kind: KindRateLimit}},
		{"throttled in a stream", Raw{Code: "throttlingException", Message: "Too many tokens, please wait before trying again."}, verdict{Kind: KindRateLimitTokens}},
		{"tokens in a stream", Raw{Status: 200, Body: `{"error":{"message":"Rate limit exceeded: too many tokens per minute, context length 4000"}}`}, verdict{Kind: KindRateLimitTokens}},
		{"moonshot tokens", Raw{Status: 429, Body: `{"error":{"message":"Your account's request reached organization TPM rate limit, current: 130000, limit: 128000","type":"rate_limit_reached_error"}}`}, verdict{Kind: KindRateLimitTokens}},
		{"gemini minute", Raw{Status: 429, Body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 15","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`}, verdict{Kind: KindRateLimit}},
		{"gemini day", Raw{Status: 429, Body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details.","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"34s"}]}}`}, verdict{Kind: KindQuota}},

		{"balance", Raw{Status: 429, Body: `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`}, verdict{Kind: KindQuota}},
		{"minimax balance", Raw{Status: 200, Body: `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`}, verdict{Kind: KindQuota}},
		{"deepseek balance", Raw{Status: 402, Body: `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`}, verdict{Kind: KindQuota}},
		{"openrouter key", Raw{Status: 403, Body: `{"error":{"message":"Key limit exceeded (total limit).","code":403}}`}, verdict{Kind: KindQuota}},
		{"arrears", Raw{Status: 400, Body: `{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}`}, verdict{Kind: KindQuota}},
		{"billing outage", Raw{Status: 503, Body: `upstream billing service: payment required lookup timed out`}, verdict{Kind: KindTransient}},

		{"gemini key", Raw{Status: 400, Body: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`}, verdict{Kind: KindAuth}},
		{"aws key", Raw{Status: 403, Code: "UnrecognizedClientException", Message: "The security token included in the request is invalid."}, verdict{Kind: KindAuth}},
		{"403", Raw{Status: 403, Body: `{"message":"Forbidden"}`}, verdict{Kind: KindAuth}},
		{"401 without body", Raw{Status: 401}, verdict{Kind: KindAuth}},
		{"403 page of a proxy", Raw{Status: 403, Body: "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>"}, verdict{Kind: KindOther}},

		{"nginx 413", Raw{Status: 413, Body: "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center>\r\n</body></html>"}, verdict{Kind: KindPayloadTooLarge}},
		{"413 without body", Raw{Status: 413}, verdict{Kind: KindPayloadTooLarge}},
		{"gemini bytes", Raw{Status: 400, Body: `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`}, verdict{Kind: KindPayloadTooLarge}},

		{"nginx 502", Raw{Status: 502, Body: "<html><head><title>502 Bad Gateway</title></head></html>"}, verdict{Kind: KindTransient}},
		{"cut upstream", Raw{Status: 200, Body: `{"error":{"code":502,"message":"Provider disconnected","metadata":{"error_type":"provider_unavailable"}}}`}, verdict{Kind: KindTransient}},
		{"bedrock stream", Raw{Code: "modelStreamErrorException", Message: "An error occurred while streaming."}, verdict{Kind: KindTransient}},
		{"loading", Raw{Status: 503, Body: `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`}, verdict{Kind: KindTransient}},
		{"server error text", Raw{Status: 200, Body: `{"type":"response.failed","response":{"error":{"code":"server_error","message":"An error occurred while processing your request."}}}`}, verdict{Kind: KindTransient}},
		{"timeout text", Raw{Body: `Post "http://127.0.0.1/v1/chat/completions": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`}, verdict{Kind: KindTransient}},
		{"501", Raw{Status: 501, Body: "Not Implemented"}, verdict{Kind: KindOther}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Classify(tt.raw)
			if diff := cmp.Diff(tt.want, verdictOf(e)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", e.Message, diff)
			}
		})
	}
}

// TestGoErrorsAreDecidedBeforeAnyText gives every error a body that says the
// opposite.
func TestGoErrorsAreDecidedBeforeAnyText(t *testing.T) {
	const body = `{"error":{"code":"context_length_exceeded","message":"prompt is too long"}}`
	post := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://api.example.com/v1?key=secret", Err: err}
	}
	tests := []struct {
		name    string
		err     error
		kind    Kind
		message string
	}{
		{"cancelled", post(context.Canceled), KindCancelled, "cancelled"},
		{"deadline", fmt.Errorf("send: %w", context.DeadlineExceeded), KindTransient, "send: context deadline exceeded"},
		{"client timeout", post(os.ErrDeadlineExceeded), KindTransient, "i/o timeout"},
		{"reset", &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, KindTransient, "read tcp: read: connection reset by peer"},
		{"bare errno", syscall.EPIPE, KindTransient, "broken pipe"},
		{"refused", post(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), KindTransient, "dial tcp: connect: connection refused"},
		{"unknown host", post(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example.com", IsNotFound: true}}), KindTransient, "no such host: api.example.com"},
		{"cut", fmt.Errorf("read stream: %w", io.ErrUnexpectedEOF), KindTransient, "the connection was closed before the answer was complete"},
		{"closed at once", post(io.EOF), KindTransient, "EOF"},
		{"http2", errors.New("http2: server sent GOAWAY and closed the connection"), KindTransient, "http2: server sent GOAWAY and closed the connection"},
		{"certificate", post(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), KindOther, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"scheme", &url.Error{Op: "Post", URL: "localhost:8080/v1", Err: errors.New("unsupported protocol scheme")}, KindOther, "unsupported protocol scheme"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Classify(Raw{Provider: "x", Body: body, Err: tt.err})
			if e.Kind != tt.kind || e.Message != tt.message {
				t.Errorf("got %s %q, want %s %q", e.Kind, e.Message, tt.kind, tt.message)
			}
			if !errors.Is(e, tt.err) {
				t.Error("the cause is not wrapped")
			}
			if strings.Contains(e.Error(), "secret") {
				t.Errorf("%q holds the query of the request", e)
			}
		})
	}
}

func TestHTTP2StreamResetIsTransient(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.ReadAll(response.Body)
	if e := Classify(Raw{Status: 200, Err: err}); e.Kind != KindTransient {
		t.Errorf("%T %v: got %s", err, err, e.Kind)
	}
}

func TestAnAnswerOutweighsItsCutBody(t *testing.T) {
	e := Classify(Raw{Status: 401, Err: io.ErrUnexpectedEOF})
	if e.Kind != KindAuth || e.Message != "Unauthorized" {
		t.Errorf("got %s %q", e.Kind, e.Message)
	}
}

func TestGarbledStreamIsTransient(t *testing.T) {
	syntax := json.Unmarshal([]byte(`{"a":`), new(any))
	if e := Classify(Raw{Status: 200, Err: fmt.Errorf("chunk: %w", syntax)}); e.Kind != KindTransient {
		t.Errorf("got %s", e.Kind)
	}
}

func TestGoErrorTextIsNotClassified(t *testing.T) {
	e := Classify(Raw{Status: 400, Err: errors.New("prompt is too long: 9 tokens > 8 maximum")})
	if e.Kind != KindOther {
		t.Errorf("got %s", e.Kind)
	}
}

func TestClassifiedErrorPassesThrough(t *testing.T) {
	want := &Error{Kind: KindQuota}
	if got := Classify(Raw{Status: 500, Err: fmt.Errorf("step: %w", want)}); got != want {
		t.Errorf("got %v", got)
	}
}

func TestMessageIsFitForATerminal(t *testing.T) {
	long := strings.Repeat("é", 3000)
	body, err := json.Marshal(map[string]string{"error": "bad\x1b[31m\u202e \n\tthing\x00 \xff" + long})
	if err != nil {
		t.Fatal(err)
	}
	got := Classify(Raw{Status: 400, Body: string(body)}).Message
	if len(got) > 2000 || !utf8.ValidString(got) || !strings.HasPrefix(got, "bad [31m thing é") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes: %.40q … %q", len(got), got, got[len(got)-10:])
	}
}

func TestStopReasonOverflow(t *testing.T) {
	tests := map[string]bool{
		"model_context_window_exceeded": true, // E031, E092
		"MODEL_CONTEXT_WINDOW_EXCEEDED": true,
		"modelContextWindowExceeded":    true,
		"contextLengthReached":          true,
		"model_length":                  true,
		"length":                        false,
		"max_tokens":                    false, // E126, E128
		"MAX_TOKENS":                    false,
		"stop":                          false,
		"":                              false,
	}
	for raw, want := range tests {
		if got := IsOverflowStop(raw); got != want {
			t.Errorf("IsOverflowStop(%q) = %t", raw, got)
		}
	}
}

func TestSmallerOutputCuresAnOverflowWithRoom(t *testing.T) {
	want := map[string]int{
		"E002": 963, "E007": 22443, "E035": 256538, "E052": 2009, "E055": 31314, "E068": 1957, "E082": 8011, "E083": 43812, "E086": 221272,
		// The input nearly fills the window, or is not stated.
		"E001": 0, "E010": 0, "E013": 0, "E028": 0, "E038": 0, "E050": 0, "E064": 0, "E074": 0, "E085": 0,
		// No overflow at all.
		"E097": 0, "E116": 0, "E135": 0,
	}
	got := map[string]int{}
	for _, row := range recordedErrors(t) {
		if _, ok := want[row.ID]; !ok {
			continue
		}
		e := Classify(parsed(row))
		output, ok := e.OutputAtFault()
		if ok != (output > 0) || ok && e.Input+output >= e.Limit {
			t.Errorf("%s: OutputAtFault() = %d, %t with %d of %d", row.ID, output, ok, e.Input, e.Limit)
		}
		got[row.ID] = output
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRetryable(t *testing.T) {
	want := map[string]bool{
		"E097": false, "E100": false, // one request over the limit of a minute
		"E098": true, "E101": true, "E103": true, "E110": true,
		"E106": false, // a limit of the day
		"E113": true, "E114": true, "E144": true, "E145": true, "E151": true,
		"E001": false, "E079": false, "E129": false, "E130": false, "E139": false, "E142": false, "E161": false, "E170": false,
	}
	got := map[string]bool{}
	for _, row := range recordedErrors(t) {
		if _, ok := want[row.ID]; ok {
			got[row.ID] = Classify(parsed(row)).Retryable()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if (&Error{Kind: KindCancelled}).Retryable() {
		t.Error("a cancelled request is retried")
	}
}

func TestWaitIsReadFromTheBody(t *testing.T) {
	tests := []struct {
		body string
		want time.Duration
	}{
		{`Rate limit reached. Please try again in 18.642s. Visit us`, 18642 * time.Millisecond},
		{`Please try again in 4.77s. Need more tokens?`, 4770 * time.Millisecond},
		{`Please try again in 1m2.5s.`, 62500 * time.Millisecond},
		{`Please try again in 350ms.`, 350 * time.Millisecond},
		{`Please retry after 60 seconds.`, time.Minute},
		{`Please retry in 34.074824224s.`, 34074824224},
		{`try again in about 2 minutes and 10 seconds`, 130 * time.Second},
		{`Try again in 5 days 3 hours.`, 123 * time.Hour},
		{`{"error":{"message":"slow down","details":[{"retryDelay":"7s"}]}}`, 7 * time.Second},
		{`{"error":{"message":"limit","type":"usage_limit_reached","resets_in_seconds":90}}`, 90 * time.Second},
		{`Please try again later.`, 0},
		{`try again in 99999999999999999999 days`, maxRetryAfter},
	}
	for _, tt := range tests {
		e := Classify(Raw{Status: 429, Body: tt.body})
		if e.RetryAfter != tt.want {
			t.Errorf("%s: got %v, want %v", tt.body, e.RetryAfter, tt.want)
		}
	}
	e := Classify(Raw{Status: 429, Body: "try again in 18s", Header: http.Header{"Retry-After": {"1"}}})
	if e.RetryAfter != time.Second {
		t.Errorf("the header does not win: %v", e.RetryAfter)
	}
}

func TestHeadersSayHowLongToWait(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	tests := []struct {
		name, key, value string
		want             time.Duration
	}{
		{"seconds", "retry-after", "30", 30 * time.Second},
		{"fraction", "Retry-After", "1.5", 1500 * time.Millisecond},
		{"date", "Retry-After", "Wed, 04 Mar 2026 05:07:07 GMT", time.Minute},
		{"past date", "Retry-After", "Wed, 04 Mar 2026 05:05:07 GMT", 0},
		{"milliseconds", "retry-after-ms", "250", 250 * time.Millisecond},
		{"negative", "Retry-After", "-1", 0},
		{"endless", "Retry-After", "1e300", maxRetryAfter},
		{"not a number", "Retry-After", "NaN", 0},
		{"nonsense", "Retry-After", "soon", 0},
		{"absent", "X-Other", "1", 0},
	}
	for _, tt := range tests {
		h := http.Header{}
		h.Set(tt.key, tt.value)
		if got := askedByHeaders(h, now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := askedByHeaders(http.Header{"Retry-After": {"30"}, "Retry-After-Ms": {"1200"}}, now); got != 1200*time.Millisecond {
		t.Errorf("milliseconds do not win: %v", got)
	}
}

func TestAdviceSaysWhatToDo(t *testing.T) {
	tests := []struct {
		name string
		raw  Raw
		want string
	}{
		{"refused key", Raw{Provider: "openai", Status: 401}, "openai refused the credential"},
		{"missing key", Raw{Provider: "openai", Status: 401, Body: "Missing API key"}, "No credential reached openai"},
		{"forbidden", Raw{Provider: "openai", Status: 403}, "rights of the account"},
		{"quota", Raw{Status: 402}, "used up"},
		{"over the rate", Raw{Status: 429, Body: "on tokens per min (TPM): Limit 30000, Requested 30601."}, "limit of 30000 tokens, so waiting does not help. Lower --context-window"},
		{"tokens", Raw{Status: 429, Body: "tokens per minute"}, "--context-window"},
		{"day", Raw{Status: 429, Body: "Too many tokens per day"}, "tomorrow"},
		{"requests", Raw{Status: 429}, "Too many requests"},
		{"output", Raw{Status: 400, Body: "max_tokens is too large: 50000. This model supports at most 32768 completion tokens"}, "--max-output-tokens 32768"},
		{"output unknown", Raw{Status: 400, Body: "`max_tokens` must be greater than `thinking.budget_tokens`."}, "--max-output-tokens."},
		{"bytes", Raw{Status: 413}, "too large in bytes"},
		{"overflow", Raw{Status: 400, Body: "prompt is too long"}, "/compact"},
		{"transient", Raw{Status: 503}, "Try again"},
		{"refused connection", Raw{Err: syscall.ECONNREFUSED}, "server runs"},
		{"unknown host", Raw{Err: &net.DNSError{Name: "x", IsNotFound: true}}, "host name"},
		{"cancelled", Raw{Err: context.Canceled}, "Send the message again"},
		{"model", Raw{Status: 400, Body: "Model openai/claude-3-5-sonnet is not available"}, "--model"},
		{"filter", Raw{Status: 400, Code: "content_filter", Body: "filtered"}, "content filter"},
		{"certificate", Raw{Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, "certificate"},
		{"address", Raw{Err: &url.Error{Op: "Post", URL: "x:y", Err: errors.New("no")}}, "base URL"},
		{"anything", Raw{Status: 400, Body: "temperature"}, "will not help"},
	}
	for _, tt := range tests {
		if got := Classify(tt.raw).Advice(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q lacks %q", tt.name, got, tt.want)
		}
	}
}

func TestHostileBodiesAreBounded(t *testing.T) {
	nested := `"prompt is too long"`
	for range 12 {
		quoted, err := json.Marshal(`{"error":` + nested + `}`)
		if err != nil {
			t.Fatal(err)
		}
		nested = string(quoted)
	}
	bodies := map[string]string{
		"deep json":     strings.Repeat(`{"error":`, 5000),
		"deep arrays":   strings.Repeat(`[`, 1<<18),
		"json in json":  nested,
		"many braces":   strings.Repeat(`x{`, 1<<16),
		"many errors":   `{"errors":[` + strings.Repeat(`{"message":"{\"a\":"},`, 20000) + `{}]}`,
		"long words":    strings.Repeat("max_tokens ", 1<<16),
		"digits":        strings.Repeat("1", 1<<18),
		"retries":       "retry in " + strings.Repeat("1 m ", 1<<16),
		"invalid utf-8": strings.Repeat("\xff", 1<<18),
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			e := Classify(Raw{Status: 400, Body: body, Message: body})
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if len(e.Message) > 2000 {
				t.Errorf("message of %d bytes", len(e.Message))
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	for _, row := range recordedErrors(f) {
		f.Add(row.Status, "", "", payload(row))
	}
	f.Add(200, "type", "message", `b'{"error":"{\"detail\":[\"1,000 + 2 > 3\"]}"}'`)
	f.Fuzz(func(t *testing.T, status int, code, message, body string) {
		e := Classify(Raw{Status: status, Code: code, Message: message, Body: body})
		if e.Kind == "" || len(e.Message) > 2000 || !utf8.ValidString(e.Message) {
			t.Errorf("kind %q, message %q", e.Kind, e.Message)
		}
		if e.Used < 0 || e.Limit < 0 || e.Input < 0 || e.Output < 0 || e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter {
			t.Errorf("numbers out of range: %+v", e)
		}
		if output, ok := e.OutputAtFault(); ok && (output <= 0 || e.Input+output > e.Limit) {
			t.Errorf("output %d does not fit: %+v", output, e)
		}
		if e.Advice() == "" {
			t.Error("no advice")
		}
	})
}
