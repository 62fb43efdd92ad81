package llm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"keen/internal/llm/apierror"
)

// AWSConfig says whose account the Bedrock client works for. What is empty is
// found the way every AWS tool finds it: environment, profile, SSO, instance.
type AWSConfig struct {
	// Region is the AWS region.
	Region string
	// Profile is a profile of the AWS configuration files.
	Profile string
	// Credentials replace the chain.
	Credentials aws.CredentialsProvider
}

// NewBedrockClient returns a client of Amazon Bedrock's ConverseStream. A
// Credential in cfg is a Bedrock API key, sent as a bearer token; without one
// requests are signed with AWS credentials. A key is sent over plain HTTP to this
// machine only: an unencrypted base URL anywhere else is an error.
func NewBedrockClient(ctx context.Context, cfg ClientConfig) (*Client, error) {
	if cfg.Credential != nil {
		if err := encryptedOrLoopback(cfg.BaseURL); err != nil {
			return nil, fmt.Errorf("set up %s: %w", cfg.Provider, err)
		}
	}
	load := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithLogger(logging.Nop{}), // The default one writes to the terminal.
	}
	if cfg.AWS.Region != "" {
		load = append(load, awsconfig.WithRegion(cfg.AWS.Region))
	}
	if cfg.AWS.Profile != "" {
		load = append(load, awsconfig.WithSharedConfigProfile(cfg.AWS.Profile))
	}
	if cfg.AWS.Credentials != nil {
		load = append(load, awsconfig.WithCredentialsProvider(cfg.AWS.Credentials))
	}
	awsCfg, err := awsconfig.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if awsCfg.Region == "" {
		return nil, errors.New("no AWS region is set: set AWS_REGION, or region for the provider in the configuration")
	}
	client := bedrockruntime.NewFromConfig(awsCfg, func(o *bedrockruntime.Options) {
		// The one retry policy is the loop's.
		o.Retryer = aws.NopRetryer{}
		o.HTTPClient = streamingClient(cfg, bearerHeader)
		if cfg.BaseURL != "" {
			o.BaseEndpoint = aws.String(cfg.BaseURL)
		}
		if o.Credentials != nil {
			o.Credentials = markedCredentials{o.Credentials}
		}
		o.BearerAuthSigner = bedrockBearer{provider: cfg.Provider, encrypted: bearer.NewSignHTTPSMessage()}
		switch {
		case cfg.Credential != nil:
			// The real one is put into each request by the transport.
			o.BearerAuthTokenProvider = bearer.StaticTokenProvider{Token: bearer.Token{Value: "set-by-transport"}}
			o.AuthSchemePreference = []string{"httpBearerAuth"}
		case cfg.AWS.Credentials != nil || cfg.AWS.Profile != "":
			// AWS_BEARER_TOKEN_BEDROCK in the environment would win over
			// what was configured.
			o.BearerAuthTokenProvider = nil
			o.AuthSchemePreference = []string{"sigv4"}
		}
	})
	return newClient(&bedrockAdapter{cfg: cfg, client: client}, cfg)
}

// bedrockBearer sends a Bedrock API key. The SDK's own signer does so over TLS
// only; a gateway or a test server on this machine usually has none, and nobody
// can read along there. It decides by the address a request really goes to,
// which the environment may have set.
type bedrockBearer struct {
	provider  string
	encrypted bearer.Signer
}

// SignWithBearerToken implements bearer.Signer.
func (b bedrockBearer) SignWithBearerToken(ctx context.Context, token bearer.Token, message bearer.Message) (bearer.Message, error) {
	request, ok := message.(*smithyhttp.Request)
	if !ok || request.IsHTTPS() {
		return b.encrypted.SignWithBearerToken(ctx, token, message)
	}
	if err := encryptedOrLoopback(request.URL.String()); err != nil {
		return nil, &apierror.Error{Kind: apierror.KindOther, Provider: b.provider, Message: err.Error()}
	}
	clone := request.Clone()
	bearerHeader(clone.Header, token.Value)
	return clone, nil
}

// encryptedOrLoopback returns an error for an address to which a key would go
// unencrypted over a network. An empty one is the provider's own.
func encryptedOrLoopback(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the base URL %q is not a URL: write it like https://host", address)
	}
	if u.Scheme != "http" || isLoopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("the API key would go unencrypted to %s: use an https base URL (http is for this machine only)", u.Host)
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// markedCredentials marks the errors of AWS credentials, so that a missing
// sign-in is not taken for a network that will come back.
type markedCredentials struct{ next aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (m markedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := m.next.Retrieve(ctx)
	if err != nil {
		return c, &awsCredentialError{err}
	}
	return c, nil
}

// awsCredentialError says that there are no AWS credentials to sign with.
type awsCredentialError struct{ err error }

func (e *awsCredentialError) Error() string {
	return "there are no AWS credentials: " + e.err.Error()
}

func (e *awsCredentialError) Unwrap() error { return e.err }
