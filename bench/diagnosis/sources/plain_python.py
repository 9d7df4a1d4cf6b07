"""Ordinary programs in PyTorch, JAX and Triton, as tutorials and well-known repositories have them, shortened; the data is synthetic."""

import math
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.utils.data import DataLoader, Dataset

from torch_harness import case, run_cases

device = "cuda"


def forever(loader):
    """Epoch after epoch."""
    while True:
        yield from loader


# ----------------------------------------------------------------------------------------------------------------------
# Training a ResNet-18 on CIFAR-10 (synthetic), as in the repositories of CIFAR classifiers.
class Cifar(Dataset):
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
    std = torch.tensor([0.2023, 0.1994, 0.2010]).view(3, 1, 1)

    def __init__(self, n=50000):
        self.data = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8)
        self.targets = torch.randint(0, 10, (n,)).tolist()

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        img = self.data[index]
        img = F.pad(img, (4, 4, 4, 4))
        i, j = torch.randint(0, 9, (2,)).tolist()
        img = img[:, i : i + 32, j : j + 32]
        if torch.rand(1) < 0.5:
            img = img.flip(-1)
        img = img.float().div(255)
        return (img - self.mean) / self.std, self.targets[index]


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(in_planes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet18(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        layers, in_planes = [], 64
        for planes, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [BasicBlock(in_planes, planes, stride), BasicBlock(planes, planes)]
            in_planes = planes
        self.layers = nn.Sequential(*layers)
        self.linear = nn.Linear(512, num_classes)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layers(out)
        out = F.avg_pool2d(out, 4)
        return self.linear(out.view(out.size(0), -1))


@case("cifar-resnet18")
def cifar():
    trainloader = DataLoader(Cifar(), batch_size=128, shuffle=True, num_workers=2)
    net = ResNet18().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    batches = forever(trainloader)
    net.train()
    stats = {"loss": 0.0, "correct": 0, "total": 0}

    def step(_):
        inputs, targets = next(batches)
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()

        stats["loss"] += loss.item()
        _, predicted = outputs.max(1)
        stats["total"] += targets.size(0)
        stats["correct"] += predicted.eq(targets).sum().item()

    step.end = batches.close
    return step


# ----------------------------------------------------------------------------------------------------------------------
# The character-level GPT of the video lecture: heads in a list, the mask as a buffer; fp32.
n_embd, n_head, n_layer, block_size, dropout = 384, 6, 6, 256, 0.2


class Head(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        wei = self.dropout(wei)
        return wei @ self.value(x)


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([Head(n_embd // n_head) for _ in range(n_head)])
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        out = torch.cat([h(x) for h in self.heads], dim=-1)
        return self.dropout(self.proj(out))


class LectureBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.sa = MultiHeadAttention()
        self.ffwd = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout))
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class LectureGPT(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.position_embedding_table = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[LectureBlock() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets):
        B, T = idx.shape
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(T, device=idx.device))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        B, T, C = logits.shape
        return logits, F.cross_entropy(logits.view(B * T, C), targets.view(B * T))


@case("lecture-gpt")
def lecture_gpt():
    vocab_size, batch_size = 65, 32
    data = torch.randint(0, vocab_size, (1_000_000,))
    model = LectureGPT(vocab_size).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def get_batch():
        ix = torch.randint(len(data) - block_size, (batch_size,))
        x = torch.stack([data[i : i + block_size] for i in ix])
        y = torch.stack([data[i + 1 : i + block_size + 1] for i in ix])
        return x.to(device), y.to(device)

    def step(_):
        xb, yb = get_batch()
        _, loss = model(xb, yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# A GPT-2 (124 M parameters) pretraining step with bf16 autocast and scaled_dot_product_attention, not compiled.
class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, dropout=0.0):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head, self.n_embd, self.dropout = n_head, n_embd, dropout

    def forward(self, x, past=None):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        if past is not None and len(past):
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0, is_causal=T > 1)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y), (k, v)


class GPTBlock(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(0.0))

    def forward(self, x, past=None):
        a, present = self.attn(self.ln_1(x), past)
        x = x + a
        x = x + self.mlp(self.ln_2(x))
        return x, present


class GPT(nn.Module):
    def __init__(self, vocab_size=50304, block_size=1024, n_layer=12, n_head=12, n_embd=768):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([GPTBlock(n_embd, n_head) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, idx, targets=None, past=None):
        start = past[0][0].size(2) if past and len(past[0]) else 0
        pos = torch.arange(start, start + idx.size(1), device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        presents = []
        for i, block in enumerate(self.h):
            x, present = block(x, past[i] if past else None)
            presents.append(present)
        x = self.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return self.lm_head(x[:, [-1], :]), presents


@case("gpt2-pretrain-bf16")
def gpt2_pretrain():
    batch_size, block, vocab_size = 4, 1024, 50304
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    data = np.random.randint(0, 50257, 2_000_000).astype(np.uint16)
    model = GPT(vocab_size).to(device)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    nodecay = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)
    ctx = torch.autocast(device_type="cuda", dtype=torch.bfloat16)

    def get_batch():
        ix = torch.randint(len(data) - block, (batch_size,))
        x = torch.stack([torch.from_numpy(data[i : i + block].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block].astype(np.int64)) for i in ix])
        return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)

    def get_lr(it):
        return 6e-4 * (it + 1) / 2000 if it < 2000 else 6e-5

    state = {"batch": get_batch()}

    def step(it):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(it)
        x, y = state["batch"]
        with ctx:
            _, loss = model(x, y)
        state["batch"] = get_batch()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if it % 10 == 0:
            state["loss"] = loss.item()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# A sentiment classifier (BERT base) behind a web endpoint: a request at a time.
class BertLayer(nn.Module):
    def __init__(self, hidden=768, heads=12, intermediate=3072):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.dense = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.intermediate = nn.Linear(hidden, intermediate)
        self.output = nn.Linear(intermediate, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.heads, self.size = heads, hidden // heads

    def transpose_for_scores(self, x):
        return x.view(*x.size()[:-1], self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q = self.transpose_for_scores(self.query(x))
        k = self.transpose_for_scores(self.key(x))
        v = self.transpose_for_scores(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        scores = scores + mask
        probs = self.dropout(F.softmax(scores, dim=-1))
        context = torch.matmul(probs, v).permute(0, 2, 1, 3).contiguous()
        context = context.view(*context.size()[:-2], -1)
        x = self.attention_norm(self.dropout(self.dense(context)) + x)
        return self.output_norm(self.dropout(self.output(F.gelu(self.intermediate(x)))) + x)


class BertClassifier(nn.Module):
    def __init__(self, vocab=30522, hidden=768, layers=12, labels=2):
        super().__init__()
        self.word = nn.Embedding(vocab, hidden)
        self.position = nn.Embedding(512, hidden)
        self.token_type = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList([BertLayer() for _ in range(layers)])
        self.pooler = nn.Linear(hidden, hidden)
        self.classifier = nn.Linear(hidden, labels)

    def forward(self, input_ids, attention_mask):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.word(input_ids) + self.position(positions) + self.token_type(torch.zeros_like(input_ids))
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


@case("bert-endpoint")
def bert_endpoint():
    model = BertClassifier().to(device).eval()
    rng = np.random.default_rng(0)
    requests = [rng.integers(1000, 30000, size=rng.integers(12, 160)).tolist() for _ in range(200)]

    @torch.no_grad()
    def predict(tokens):
        input_ids = torch.tensor([[101] + tokens + [102]]).to(device)
        attention_mask = torch.ones_like(input_ids)
        probs = F.softmax(model(input_ids, attention_mask), dim=-1)
        label = probs.argmax(-1).item()
        return {"label": label, "score": probs[0, label].item()}

    def step(index):
        predict(requests[index % len(requests)])

    return step


# ----------------------------------------------------------------------------------------------------------------------
# Text generation with GPT-2 in half precision: a prompt, then token after token with a cache of keys and values, top-k sampling. A step: one prompt, 12 tokens.
@case("gpt2-generate")
def gpt2_generate():
    model = GPT().to(device).half().eval()
    prompts = [torch.randint(0, 50257, (1, 64)) for _ in range(16)]
    eos = 50256

    @torch.no_grad()
    def generate(prompt, max_new_tokens=12, temperature=0.8, top_k=200):
        tokens = prompt.to(device)
        past, idx = None, tokens
        for _ in range(max_new_tokens):
            logits, past = model(idx, past=past)
            logits = logits[:, -1, :] / temperature
            v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
            logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            idx = torch.multinomial(probs, num_samples=1)
            tokens = torch.cat((tokens, idx), dim=1)
            if idx.item() == eos:
                break
        return tokens[0].tolist()

    def step(index):
        generate(prompts[index % len(prompts)])

    return step


# ----------------------------------------------------------------------------------------------------------------------
# DCGAN of the tutorial, on synthetic pictures.
class Faces(Dataset):
    def __init__(self, n=8192):
        self.images = torch.randint(0, 256, (n, 64, 64, 3), dtype=torch.uint8).numpy()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        img = torch.from_numpy(self.images[index]).permute(2, 0, 1).contiguous().float().div(255)
        return (img - 0.5) / 0.5, 0


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


@case("dcgan")
def dcgan():
    nz, ngf, ndf, nc, batch_size = 100, 64, 64, 3, 128
    dataloader = DataLoader(Faces(), batch_size=batch_size, shuffle=True, num_workers=2)
    netG = nn.Sequential(
        nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 8), nn.ReLU(True),
        nn.ConvTranspose2d(ngf * 8, ngf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
        nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
        nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
        nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh(),
    ).to(device)  # fmt: skip
    netD = nn.Sequential(
        nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 4), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(ndf * 4, ndf * 8, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 8), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    ).to(device)  # fmt: skip
    netG.apply(weights_init)
    netD.apply(weights_init)
    criterion = nn.BCELoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=0.0002, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=0.0002, betas=(0.5, 0.999))
    batches = forever(dataloader)
    G_losses, D_losses = [], []

    def step(_):
        # (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = next(batches)[0].to(device)
        b_size = real.size(0)
        label = torch.full((b_size,), 1.0, dtype=torch.float, device=device)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()
        noise = torch.randn(b_size, nz, 1, 1, device=device)
        fake = netG(noise)
        label.fill_(0.0)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()
        # (2) Update G network: maximize log(D(G(z)))
        netG.zero_grad()
        label.fill_(1.0)
        output = netD(fake).view(-1)
        errG = criterion(output, label)
        errG.backward()
        D_G_z2 = output.mean().item()
        optimizerG.step()
        G_losses.append(errG.item())
        D_losses.append(errD.item())
        return D_x, D_G_z1, D_G_z2

    step.end = batches.close
    return step


# ----------------------------------------------------------------------------------------------------------------------
# PPO in one file, CartPole as a vector environment in numpy: 16 environments, 32 steps, 2 epochs of 4 minibatches.
class CartPoles:
    def __init__(self, n):
        self.n, self.rng = n, np.random.default_rng(1)
        self.state = self.rng.uniform(-0.05, 0.05, (n, 4))
        self.steps = np.zeros(n, dtype=np.int64)

    def reset(self):
        return self.state.astype(np.float32)

    def step(self, action):
        x, x_dot, theta, theta_dot = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        cos, sin = np.cos(theta), np.sin(theta)
        temp = (force + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        self.state = np.stack([x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc], axis=1)
        self.steps += 1
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.2095) | (self.steps >= 500)
        if done.any():
            self.state[done] = self.rng.uniform(-0.05, 0.05, (done.sum(), 4))
            self.steps[done] = 0
        return self.state.astype(np.float32), np.ones(self.n, dtype=np.float32), done


def layer_init(layer, std=np.sqrt(2)):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 1), 1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 2), 0.01))

    def get_action_and_value(self, x, action=None):
        probs = torch.distributions.Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


@case("ppo-cartpole")
def ppo():
    num_envs, num_steps, epochs, minibatches, gamma, lam = 16, 32, 2, 4, 0.99, 0.95
    batch_size = num_envs * num_steps
    envs, agent = CartPoles(num_envs), Agent().to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs = torch.zeros((num_steps, num_envs, 4)).to(device)
    actions, logprobs, rewards, dones, values = (torch.zeros((num_steps, num_envs)).to(device) for _ in range(5))
    state = {"obs": torch.Tensor(envs.reset()).to(device), "done": torch.zeros(num_envs).to(device)}

    def update(_):
        next_obs, next_done = state["obs"], state["done"]
        for step in range(num_steps):
            obs[step] = next_obs
            dones[step] = next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            next_obs, reward, done = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward).to(device).view(-1)
            next_obs, next_done = torch.Tensor(next_obs).to(device), torch.Tensor(done).to(device)
        state["obs"], state["done"] = next_obs, next_done

        with torch.no_grad():
            next_value = agent.critic(next_obs).reshape(1, -1)
            advantages = torch.zeros_like(rewards).to(device)
            lastgaelam = 0
            for t in reversed(range(num_steps)):
                if t == num_steps - 1:
                    nextnonterminal, nextvalues = 1.0 - next_done, next_value
                else:
                    nextnonterminal, nextvalues = 1.0 - dones[t + 1], values[t + 1]
                delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + gamma * lam * nextnonterminal * lastgaelam
            returns = advantages + values

        b_obs, b_logprobs, b_actions = obs.reshape(-1, 4), logprobs.reshape(-1), actions.reshape(-1)
        b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
        b_inds = np.arange(batch_size)
        clipfracs = []
        for _epoch in range(epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, batch_size // minibatches):
                mb_inds = b_inds[start : start + batch_size // minibatches]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions.long()[mb_inds])
                logratio = newlogprob - b_logprobs[mb_inds]
                ratio = logratio.exp()
                with torch.no_grad():
                    clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
                mb_adv = b_advantages[mb_inds]
                mb_adv = (mb_adv - mb_adv.mean()) / (mb_adv.std() + 1e-8)
                pg_loss = torch.max(-mb_adv * ratio, -mb_adv * torch.clamp(ratio, 0.8, 1.2)).mean()
                v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb_inds]) ** 2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()

    return update


# ----------------------------------------------------------------------------------------------------------------------
# A graph convolutional network (two layers and one more), full batch, sparse matrix products; 100 K nodes, ~2 M edges.
class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        support = torch.mm(x, self.weight)
        return torch.spmm(adj, support) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nhid)
        self.gc3 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), self.dropout, training=self.training)
        x = F.dropout(F.relu(self.gc2(x, adj)), self.dropout, training=self.training)
        return F.log_softmax(self.gc3(x, adj), dim=1)


@case("gcn")
def gcn():
    n, edges, nfeat, nclass = 100_000, 1_000_000, 128, 40
    rng = np.random.default_rng(0)
    # preferential: targets drawn with a power law
    src = rng.integers(0, n, edges)
    dst = (n * rng.random(edges) ** 2.5).astype(np.int64)
    row, col = np.concatenate([src, dst, np.arange(n)]), np.concatenate([dst, src, np.arange(n)])
    adj = torch.sparse_coo_tensor(torch.from_numpy(np.stack([row, col])), torch.ones(len(row)), (n, n)).coalesce()
    degree = torch.sparse.sum(adj, dim=1).to_dense()
    values = adj.values() / degree[adj.indices()[0]]
    adj = torch.sparse_coo_tensor(adj.indices(), values, (n, n)).coalesce().to(device)
    features, labels = torch.randn(n, nfeat).to(device), torch.randint(0, nclass, (n,)).to(device)
    order = torch.randperm(n)
    idx_train, idx_val = order[: n // 2].to(device), order[n // 2 : n // 2 + n // 5].to(device)
    model = GCN(nfeat, 128, nclass, 0.5).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    log = []

    def accuracy(output, labels):
        return (output.max(1)[1] == labels).double().sum() / len(labels)

    def epoch(_):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        acc_train = accuracy(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        output = model(features, adj)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
        acc_val = accuracy(output[idx_val], labels[idx_val])
        log.append((loss_train.item(), acc_train.item(), loss_val.item(), acc_val.item()))

    return epoch


# ----------------------------------------------------------------------------------------------------------------------
# Word-level language model with an LSTM, as in the examples of PyTorch.
class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.5):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid, self.nlayers, self.ntoken = nhid, nlayers, ntoken
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


@case("lstm-lm")
def lstm_lm():
    ntokens, bsz, bptt, clip, lr = 33278, 20, 35, 0.25, 20
    train_data = torch.randint(0, ntokens, (20000, bsz)).to(device)
    model = RNNModel(ntokens, 650, 650, 2).to(device)
    criterion = nn.NLLLoss()
    model.train()
    state = {"hidden": model.init_hidden(bsz), "total": 0.0}

    def step(batch):
        i = batch * bptt % (len(train_data) - bptt - 1)
        data, targets = train_data[i : i + bptt], train_data[i + 1 : i + 1 + bptt].view(-1)
        model.zero_grad()
        hidden = tuple(h.detach() for h in state["hidden"])
        output, state["hidden"] = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        state["total"] += loss.item()

    return step


# ----------------------------------------------------------------------------------------------------------------------
# JAX from its tutorial: an MLP for MNIST with jit, grad and vmap; batches from numpy. A step: 20 batches, then the loss is printed (kept).
@case("jax-mnist")
def jax_mnist():
    import jax
    import jax.numpy as jnp

    sizes, batch_size, step_size = [784, 512, 512, 10], 128, 0.01

    def random_layer_params(m, n, key, scale=1e-2):
        w_key, b_key = jax.random.split(key)
        return scale * jax.random.normal(w_key, (n, m)), scale * jax.random.normal(b_key, (n,))

    keys = jax.random.split(jax.random.PRNGKey(0), len(sizes))
    params = [random_layer_params(m, n, k) for m, n, k in zip(sizes[:-1], sizes[1:], keys)]

    def predict(params, image):
        activations = image
        for w, b in params[:-1]:
            activations = jax.nn.relu(jnp.dot(w, activations) + b)
        w, b = params[-1]
        logits = jnp.dot(w, activations) + b
        return logits - jax.scipy.special.logsumexp(logits)

    batched_predict = jax.vmap(predict, in_axes=(None, 0))

    def one_hot(x, k=10):
        return np.array(x[:, None] == np.arange(k), np.float32)

    def loss(params, images, targets):
        return -jnp.mean(batched_predict(params, images) * targets)

    @jax.jit
    def update(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return [(w - step_size * dw, b - step_size * db) for (w, b), (dw, db) in zip(params, grads)]

    evaluate = jax.jit(loss)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60000, 784), dtype=np.uint8)
    labels = rng.integers(0, 10, 60000)
    state = {"params": params}

    def step(_):
        for _batch in range(20):
            index = rng.integers(0, len(images), batch_size)
            x = images[index].astype(np.float32) / 255
            y = one_hot(labels[index])
            state["params"] = update(state["params"], x, y)
        state["loss"] = float(evaluate(state["params"], x, y))

    return step


# ----------------------------------------------------------------------------------------------------------------------
# Attention with the fused softmax of Triton's tutorial (a program a row), in half precision; a step: 4 layers.
@triton.jit
def softmax_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0)
    row_start_ptr = input_ptr + row_idx * input_row_stride
    col_offsets = tl.arange(0, BLOCK_SIZE)
    row = tl.load(row_start_ptr + col_offsets, mask=col_offsets < n_cols, other=-float("inf")).to(tl.float32)
    row_minus_max = row - tl.max(row, axis=0)
    numerator = tl.exp(row_minus_max)
    softmax_output = numerator / tl.sum(numerator, axis=0)
    output_row_start_ptr = output_ptr + row_idx * output_row_stride
    tl.store(output_row_start_ptr + col_offsets, softmax_output, mask=col_offsets < n_cols)


def softmax(x):
    n_rows, n_cols = x.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    num_warps = 4
    if BLOCK_SIZE >= 2048:
        num_warps = 8
    if BLOCK_SIZE >= 4096:
        num_warps = 16
    y = torch.empty_like(x)
    softmax_kernel[(n_rows,)](y, x, x.stride(0), y.stride(0), n_cols, num_warps=num_warps, BLOCK_SIZE=BLOCK_SIZE)
    return y


@case("triton-softmax-attention")
def triton_attention():
    batch, heads, length, size, layers = 8, 12, 1024, 64, 4
    x = torch.randn(batch, length, heads * size, device=device, dtype=torch.float16)
    weights = [(nn.Linear(heads * size, 3 * heads * size).to(device).half(), nn.Linear(heads * size, heads * size).to(device).half()) for _ in range(layers)]

    @torch.no_grad()
    def step(_):
        h = x
        for qkv, out in weights:
            q, k, v = qkv(h).view(batch, length, 3, heads, size).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-1, -2) / math.sqrt(size)
            probs = softmax(scores.view(-1, length)).view_as(scores)
            h = h + out((probs @ v).transpose(1, 2).reshape(batch, length, heads * size))

    return step


# ----------------------------------------------------------------------------------------------------------------------
# Super resolution (EDSR baseline, x2): a picture at a time from numpy and back, with its PSNR.
class ResBlock(nn.Module):
    def __init__(self, feats):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(feats, feats, 3, padding=1), nn.ReLU(True), nn.Conv2d(feats, feats, 3, padding=1))

    def forward(self, x):
        return x + self.body(x)


class EDSR(nn.Module):
    def __init__(self, blocks=16, feats=64, scale=2):
        super().__init__()
        self.head = nn.Conv2d(3, feats, 3, padding=1)
        self.body = nn.Sequential(*[ResBlock(feats) for _ in range(blocks)], nn.Conv2d(feats, feats, 3, padding=1))
        self.tail = nn.Sequential(nn.Conv2d(feats, feats * scale**2, 3, padding=1), nn.PixelShuffle(scale), nn.Conv2d(feats, 3, 3, padding=1))

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + self.body(x))


@case("edsr-inference")
def edsr():
    model = EDSR().to(device).eval()
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(8):
        high = rng.integers(0, 256, (512, 640, 3), dtype=np.uint8)
        pairs.append((high[::2, ::2].copy(), high))
    scores = []

    @torch.no_grad()
    def step(index):
        low, high = pairs[index % len(pairs)]
        lr = torch.from_numpy(low.transpose(2, 0, 1)).float().unsqueeze(0).to(device) / 255
        sr = model(lr)
        sr = sr.squeeze(0).clamp(0, 1).mul(255).round().byte().cpu().numpy().transpose(1, 2, 0)
        mse = np.mean((sr.astype(np.float64) - high.astype(np.float64)) ** 2)
        scores.append(10 * np.log10(255**2 / max(mse, 1e-10)))

    return step


if __name__ == "__main__":
    run_cases()
