import { mount } from 'svelte';
import App from './App.svelte';
import './style.css';
import { page } from './view/state.svelte';

page.start(document.getElementById('unisono-data')?.textContent, location.hash);
mount(App, { target: document.getElementById('app')! });
