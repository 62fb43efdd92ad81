package providers

// Preset ids that other code refers to.
const (
	OpenAICompatible = "openai-compatible"
	Bedrock          = "bedrock"
	Ollama           = "ollama"
	Azure            = "azure"
)

// anthropicVersion is the version of Anthropic's wire that compatible servers
// were built after.
const anthropicVersion = "2023-06-01"

// codexWindow is the window that the Codex backend serves, in tokens. Its
// models take more elsewhere.
const codexWindow = 272_000

// presets is the table of providers. Its order is the order in which they are
// tried when the user names none.
func presets() []Provider {
	return append(append(vendors(), compatible()...), local()...)
}

// vendors are the providers with a client of their own.
func vendors() []Provider {
	return []Provider{
		{
			ID: "anthropic", Name: "Anthropic", Wire: WireAnthropic,
			BaseURL: "https://api.anthropic.com", BaseURLEnv: "ANTHROPIC_BASE_URL", KeyEnv: []string{"ANTHROPIC_API_KEY"},
			DefaultModel: "claude-sonnet-5", catalogues: []string{"anthropic"}, otherNames: []string{"claude"},
		},
		{
			ID: "openai", Name: "OpenAI", Wire: WireResponses,
			BaseURL: "https://api.openai.com/v1", Path: "/v1", BaseURLEnv: "OPENAI_BASE_URL", KeyEnv: []string{"OPENAI_API_KEY"},
			DefaultModel: "gpt-5.6-sol", catalogues: []string{"openai"}, otherNames: []string{"gpt"},
		},
		{
			ID: "openai-codex", Name: "OpenAI Codex", Wire: WireCodex, Auth: AuthAccount,
			BaseURL: "https://chatgpt.com/backend-api/codex", DefaultModel: "gpt-5.6-sol",
			Quirks:     Quirks{MaxWindow: codexWindow},
			catalogues: []string{"openai"}, otherNames: []string{"codex", "chatgpt"},
		},
		{
			ID: "googleai", Name: "Google AI", Wire: WireGemini,
			BaseURL: "https://generativelanguage.googleapis.com", KeyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
			DefaultModel: "gemini-3.1-pro-preview-customtools", catalogues: []string{"gemini"}, otherNames: []string{"gemini", "google"},
		},
		{
			ID: Bedrock, Name: "Amazon Bedrock", Wire: WireBedrock, Auth: AuthAWS, KeyEnv: []string{"AWS_BEARER_TOKEN_BEDROCK"},
			DefaultModel: "us.anthropic.claude-sonnet-5", catalogues: []string{"bedrock", "bedrock-europe"},
			otherNames: []string{"amazon-bedrock", "aws", "amazon"},
		},
	}
}

// compatible are the hosted providers that speak another one's wire.
func compatible() []Provider {
	hosted := func(id, name, baseURL, keyEnv, model string) Provider {
		return Provider{
			ID: id, Name: name, Wire: WireChat, BaseURL: baseURL, KeyEnv: []string{keyEnv}, DefaultModel: model,
			Server: ServerModels, catalogues: []string{id},
		}
	}
	deepseek := hosted("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-v4-pro")
	deepseek.Quirks.ReplayReasoning = true
	moonshot := hosted("moonshot", "Moonshot AI", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k3")
	moonshot.Quirks.ReplayReasoning = true
	moonshot.otherNames = []string{"moonshotai", "kimi"}
	zai := hosted("zai", "Z.ai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-5.2")
	zai.Quirks.ReplayReasoning = true
	zai.otherNames = []string{"z.ai", "glm", "zhipu"}
	plan := hosted("zai-coding", "Z.ai coding plan", "https://api.z.ai/api/coding/paas/v4", "ZAI_CODING_API_KEY", "glm-5.2")
	plan.Quirks.ReplayReasoning = true
	plan.KeyEnv = append(plan.KeyEnv, zai.KeyEnv...)
	plan.catalogues = zai.catalogues
	minimax := hosted("minimax", "MiniMax", "https://api.minimax.io/anthropic", "MINIMAX_API_KEY", "MiniMax-M2.7")
	minimax.Wire, minimax.Server = WireAnthropic, ServerUnknown
	minimax.Quirks.AnthropicVersion = anthropicVersion
	groq := hosted("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "moonshotai/kimi-k2-instruct-0905")
	groq.Quirks.MaxCompletionTokens = true
	mistral := hosted("mistral", "Mistral AI", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "devstral-medium-latest")
	mistral.Quirks.NoStreamOptions = true
	mistral.catalogues = nil
	xai := hosted("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", "grok-4.5")
	xai.otherNames = []string{"grok"}
	together := hosted("together", "Together AI", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "openai/gpt-oss-120b")
	together.catalogues = nil
	cerebras := hosted("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "gpt-oss-120b")
	cerebras.Quirks.MaxCompletionTokens = true
	return []Provider{
		deepseek, moonshot, zai, plan, minimax,
		hosted("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "anthropic/claude-sonnet-5"),
		groq, mistral, xai, together,
		hosted("fireworks", "Fireworks AI", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "accounts/fireworks/models/deepseek-v4-pro-0813"),
		cerebras,
		{
			ID: Azure, Name: "Azure OpenAI", Wire: WireChat, Path: "/openai/v1", BaseURLEnv: "AZURE_OPENAI_ENDPOINT",
			KeyEnv: []string{"AZURE_OPENAI_API_KEY"}, Quirks: Quirks{MaxCompletionTokens: true}, catalogues: []string{"azure"},
		},
	}
}

// local are the programs that users run themselves, and the two presets for
// servers that are not in the table. 127.0.0.1 is written out: "localhost" may
// lead to ::1, where many of them do not listen.
func local() []Provider {
	server := func(id, name, baseURL string, kind ServerKind) Provider {
		return Provider{ID: id, Name: name, Wire: WireChat, Auth: AuthOptionalKey, BaseURL: baseURL, Path: "/v1", Server: kind}
	}
	litellm := server("litellm", "LiteLLM", "http://127.0.0.1:4000/v1", ServerLiteLLM)
	litellm.KeyEnv = []string{"LITELLM_API_KEY"}
	ollama := server(Ollama, "Ollama", "http://127.0.0.1:11434/v1", ServerOllama)
	ollama.BaseURLEnv = "OLLAMA_HOST"
	ollama.Quirks.TruncatesSilently = true
	lmstudio := server("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", ServerLMStudio)
	lmstudio.otherNames = []string{"lm-studio"}
	llamacpp := server("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1", ServerLlamaCpp)
	llamacpp.otherNames = []string{"llama.cpp", "llama-cpp", "llama-server"}
	return []Provider{
		litellm, ollama, lmstudio, llamacpp,
		server("vllm", "vLLM", "http://127.0.0.1:8000/v1", ServerModels),
		{ID: OpenAICompatible, Name: "OpenAI-compatible server", Wire: WireChat, Auth: AuthOptionalKey, Server: ServerAny, otherNames: []string{"custom", "compatible"}},
		{
			ID: "anthropic-compatible", Name: "Anthropic-compatible server", Wire: WireAnthropic, Auth: AuthOptionalKey,
			Quirks: Quirks{AnthropicVersion: anthropicVersion},
		},
	}
}
